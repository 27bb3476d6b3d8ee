import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { groupOf, people, say } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { type SharedPostgres, sharedPostgres } from "@parley/testkit/postgres.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import {
  noRates,
  onSeveralNodes,
  spawnMain,
  startServer,
  type TestServer,
} from "@parley/testkit/server.ts";
import {
  clientOf,
  connected,
  contents,
  delivered,
  memoryStorage,
  until,
} from "./support/clients.ts";
import { equalsServer, loadAll } from "./support/view.ts";

/** A server that can be restored from a backup, as an operator would do it. */
interface Restorable {
  server: TestServer;
  backUp(): Promise<void>;
  /** Stops the server, restores the backup, and starts it again. */
  restore(): Promise<void>;
}

async function onSqlite(): Promise<Restorable & AsyncDisposable> {
  const server = await startServer(noRates);
  const backup = mkdtempSync(join(tmpdir(), "parley-backup-"));
  return {
    server,
    async backUp() {
      await server.stop();
      cpSync(server.dataDir, backup, { recursive: true });
      await server.restart();
    },
    async restore() {
      await server.stop();
      rmSync(server.dataDir, { recursive: true });
      cpSync(backup, server.dataDir, { recursive: true });
      await server.restart();
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      rmSync(backup, { recursive: true });
    },
  };
}

let postgres: SharedPostgres;

async function onPostgres(): Promise<Restorable & AsyncDisposable> {
  const { url, drop } = await postgres.database();
  const server = await startServer({ ...noRates, DATABASE_URL: url });
  const dump = join(server.dataDir, "parley.dump");
  const run = (program: string, ...rest: string[]) =>
    expect(Bun.spawnSync([join(postgres.bin, program), ...rest]).exitCode).toBe(0);
  return {
    server,
    backUp: async () => run("pg_dump", "--format=custom", `--file=${dump}`, url),
    async restore() {
      await server.stop();
      run("pg_restore", "--clean", "--if-exists", `--dbname=${url}`, dump);
      await server.restart();
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await drop();
    },
  };
}

beforeAll(async () => {
  postgres = await sharedPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

const backends = { SQLite: onSqlite, PostgreSQL: onPostgres };

describe.skipIf(onSeveralNodes).each(Object.keys(backends) as (keyof typeof backends)[])(
  "after a restore on %s",
  (backend) => {
    test("a client takes over the server's state, and sends its unsent messages once", async () => {
      await using restorable = await backends[backend]();
      const { server } = restorable;
      const [ann, bob] = await people(server.url, "ann", "bob");
      const chat = await groupOf(ann, bob);
      await say(bob, chat, "kept");
      await restorable.backUp();
      await using proxy = await FaultyProxy.to(server.url);
      using client = await connected(ann, proxy.url);
      const { model } = client;
      await model.openChat(chat.id);
      const lost = await groupOf(ann.at(server.url), bob.at(server.url));
      for (const text of ["lost", "lost too"]) await say(bob.at(server.url), chat, text);
      model.send(chat.id, "sent and lost");
      await delivered(client, chat.id);
      await until(client, "chats", () => model.get("chats").includes(lost.id));
      expect(contents(client, chat.id)).toHaveLength(4);

      proxy.refuse(true);
      proxy.cut();
      await until(client, "status", () => client.status === "offline");
      model.send(chat.id, "unsent");
      model.setDraft(chat.id, "half a thought");
      await restorable.restore();
      proxy.retarget(server.url);
      proxy.reset();

      await until(client, `messages:${chat.id}`, () => {
        const { items, loaded } = model.get(`messages:${chat.id}`);
        return loaded && items.every(({ delivery }) => delivery === "sent");
      });
      expect(contents(client, chat.id)).toEqual(["kept", "unsent"]);
      expect(model.get("chats")).not.toContain(lost.id);
      expect(model.get(`draft:${chat.id}`)).toBe("half a thought");
      await say(bob.at(server.url), chat, "after");
      await until(client, `messages:${chat.id}`, () => contents(client, chat.id).includes("after"));
      await loadAll(client);
      await equalsServer(client, ann.at(server.url));
    });

    test("caches older and newer than the backup are replaced by the server's state", async () => {
      await using restorable = await backends[backend]();
      const { server } = restorable;
      const [ann, bob] = await people(server.url, "ann", "bob");
      const chat = await groupOf(ann, bob);
      const seen = async () => {
        const storage = memoryStorage();
        const client = await connected(ann, server.url, { storage });
        await client.model.openChat(chat.id);
        client.close();
        return storage;
      };
      await say(bob, chat, "first");
      const older = await seen();
      await say(bob, chat, "second");
      await restorable.backUp();
      await say(bob.at(server.url), chat, "lost");
      const newer = await seen();
      await restorable.restore();
      // As many messages as were lost, so that the counters are equal.
      await say(bob.at(server.url), chat, "third");
      for (const storage of [older, newer]) {
        using client = await connected(ann, server.url, { storage });
        await client.model.openChat(chat.id);
        await loadAll(client);
        expect(contents(client, chat.id)).toEqual(["first", "second", "third"]);
        await equalsServer(client, ann.at(server.url));
      }
    });

    test("eachMessage delivers what is new, and nothing twice", async () => {
      await using restorable = await backends[backend]();
      const { server } = restorable;
      const [bot, bob] = await people(server.url, "bot", "bob");
      const chat = await groupOf(bob, bot);
      const storage = memoryStorage();
      const got: string[] = [];
      const follow = async (last: string) => {
        const done = Promise.withResolvers<void>();
        using client = clientOf(bot, server.url, { storage });
        client.eachMessage(({ content }) => {
          got.push(content);
          if (content === last) done.resolve();
        });
        await client.connect();
        await say(bob.at(server.url), chat, last);
        await done.promise;
        await client.getMe();
      };
      await follow("one");
      await restorable.backUp();
      await follow("lost");
      await restorable.restore();
      // It gets the counter value of the lost message.
      await say(bob.at(server.url), chat, "two");
      await follow("three");
      expect(got).toEqual(["one", "lost", "two", "three"]);
    });
  },
);

describe.skipIf(onSeveralNodes)("after a restore that the server did not notice", () => {
  /** A client of a restored server that has the same history id as before. */
  async function unnoticed() {
    const restorable = await onSqlite();
    const { server } = restorable;
    const [ann, bob] = await people(server.url, "ann", "bob");
    const chat = await groupOf(ann, bob);
    await say(bob, chat, "kept");
    await restorable.backUp();
    const proxy = await FaultyProxy.to(server.url);
    const client = await connected(ann, proxy.url);
    await client.model.openChat(chat.id);
    await say(bob.at(server.url), chat, "lost");
    await until(client, `messages:${chat.id}`, () => contents(client, chat.id).includes("lost"));
    const before = historyOf(server);
    proxy.refuse(true);
    proxy.cut();
    await restorable.restore();
    historyOf(server, before);
    proxy.retarget(server.url);
    return {
      server,
      proxy,
      client,
      chat,
      ann,
      async [Symbol.asyncDispose]() {
        client.close();
        await proxy[Symbol.asyncDispose]();
        await restorable[Symbol.asyncDispose]();
      },
    };
  }

  function historyOf(server: TestServer, set?: string): string {
    using db = databaseOf(server);
    if (set !== undefined) db.query("UPDATE history SET id = ?").run(set);
    return db.query<{ id: string }, []>("SELECT id FROM history").get()?.id ?? "";
  }

  test("a client with higher counters than the server's fetches everything again", async () => {
    await using here = await unnoticed();
    const { server, proxy, client, chat, ann } = here;
    proxy.reset();
    await until(client, `messages:${chat.id}`, () => contents(client, chat.id).length === 1);
    expect(contents(client, chat.id)).toEqual(["kept"]);
    await equalsServer(client, ann.at(server.url));
  });

  test("`parley history renew` makes clients fetch everything again", async () => {
    await using here = await unnoticed();
    const { server, proxy, client } = here;
    const before = historyOf(server);
    const renewing = spawnMain({ PARLEY_DATA: server.dataDir }, ["history", "renew"]);
    expect(await renewing.exited).toBe(0);
    expect(historyOf(server)).not.toBe(before);
    proxy.reset();
    const hello = Promise.withResolvers<string | undefined>();
    client.on("events.hello", ({ history_id }) => hello.resolve(history_id));
    expect(await hello.promise).toBe(historyOf(server));
  });
});
