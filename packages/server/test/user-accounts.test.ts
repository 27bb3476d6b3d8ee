import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { groupOf, people, post, say, signUp } from "@parley/testkit/client.ts";
import { type SharedPostgres, sharedPostgres } from "@parley/testkit/postgres.ts";
import { type Environment, runMain, startServer } from "@parley/testkit/server.ts";
import { linesOf, unzip } from "@parley/testkit/zip.ts";

let postgres: SharedPostgres;
let folder: string;
beforeAll(async () => {
  postgres = await sharedPostgres();
  folder = mkdtempSync(join(tmpdir(), "parley-exports-"));
});
afterAll(async () => {
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const password = "correct horse battery";

describe.each(["SQLite", "PostgreSQL"])("parley users, while a server runs on %s", (store) => {
  async function start() {
    const { url } = await postgres.database();
    const database: Environment = store === "SQLite" ? {} : { DATABASE_URL: url };
    const server = await startServer({ ...database, PARLEY_OPERATORS: "olga" });
    const env = { ...database, PARLEY_DATA: server.dataDir, PARLEY_OPERATORS: "olga" };
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await runMain(["users", ...args, "--json"], env);
      return { code, stderr, result: code === 0 ? JSON.parse(stdout) : null };
    };
    return { server, run };
  }

  test("suspend closes sockets, and restore lets the person sign in again", async () => {
    const { server, run } = await start();
    await using _ = server;
    const alice = await signUp(server.url);
    const { username } = alice;
    const signIn = async () => (await post(server.url, "signIn", { username, password })).status;
    await using socket = await alice.connect();
    const { result, stderr } = await run("suspend", username);
    expect(result).toEqual({ username, suspended: true });
    expect(stderr).toBe("");
    await socket.until(() => socket.closed, "close");
    expect(await signIn()).toBe(403);
    expect((await run("restore", username)).result).toEqual({ username, suspended: false });
    expect(await signIn()).toBe(200);
  });

  test("erase deletes an account, and its messages if asked to", async () => {
    const { server, run } = await start();
    await using _ = server;
    const [alice, bob] = await people(server.url, "alice", "bob");
    const { username } = alice;
    const chat = await groupOf(alice, bob);
    await say(alice, chat, "one");
    const kept = await say(bob, chat, "two");
    await using socket = await bob.connect();
    const unconfirmed = await run("erase", username);
    expect(unconfirmed.code).toBe(1);
    expect(unconfirmed.stderr).toContain("Run the command again with --yes");
    expect(await alice.call("getMe")).toMatchObject(alice.account);

    const { code, stderr } = await run("erase", username, "--messages", "--yes");
    expect(code).toBe(0);
    expect(stderr).not.toContain('"event"');
    await socket.event("events.accountUpdated", ({ deleted }) => deleted === true);
    const history = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(history.items).toEqual([kept]);
    const { participants } = await bob.call("getChat", { chat_id: chat.id });
    expect(participants).toEqual([bob.account]);
    expect((await run("erase", username, "--yes")).stderr).toContain("There is no person named");
  });

  test("operators are neither suspended nor erased", async () => {
    const { server, run } = await start();
    await using _ = server;
    await run("create", "olga");
    for (const args of [
      ["suspend", "olga"],
      ["erase", "olga", "--yes"],
    ]) {
      const { code, stderr } = await run(...args);
      expect(code).toBe(1);
      expect(stderr).toContain("olga is an operator and cannot be");
    }
  });

  test("export writes an archive that only its owner can read", async () => {
    const { server, run } = await start();
    await using _ = server;
    const alice = await signUp(server.url);
    const { username } = alice;
    const message = await say(alice, await groupOf(alice), "hello");
    await run("suspend", username);
    const file = join(folder, `${store}.zip`);
    const { result } = await run("export", username, file);
    const { size, mode } = statSync(file);
    expect(result).toEqual({ username, file, bytes: size, messages: 1 });
    expect(mode & 0o777).toBe(0o600);
    const files = unzip(readFileSync(file));
    expect(linesOf(files, "messages.jsonl")).toEqual([message]);
    const again = await run("export", username, file);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("exists")]);
    const nobody = await run("export", "nobody_here", join(folder, "nobody.zip"));
    expect([nobody.code, nobody.stderr]).toEqual([1, expect.stringContaining("no person")]);
    expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);
  });
});
