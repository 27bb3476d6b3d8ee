import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { selfSigned } from "@parley/testkit/certificate.ts";
import { startPostgres, type TestPostgres } from "@parley/testkit/postgres.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { until } from "@parley/testkit/until.ts";
import { SQL } from "bun";
import type { Change } from "../src/changes/change.ts";
import { readConfig } from "../src/config/config.ts";
import { addMembers } from "../src/domain/groups.ts";
import { createOidcAccounts } from "../src/domain/oidc-accounts.ts";
import { createLogger } from "../src/observe/log.ts";
import { createAuditLog } from "../src/security/audit-log.ts";
import { createAuthenticator } from "../src/security/authenticate.ts";
import type { LogLimits } from "../src/store/changes.ts";
import { changeWriter, wasCommitted } from "../src/store/hot/changes-postgres.ts";
import { type Connections, connections, openPool } from "../src/store/postgres/connection.ts";
import { openPostgresStore } from "../src/store/postgres/index.ts";
import { migrate, migrations, NEWEST_SCHEMA } from "../src/store/postgres/migrations.ts";
import type { Unit } from "../src/store/postgres/unit.ts";
import { commitOrder, writeLane } from "../src/store/postgres/write-lane.ts";
import { type ReadTx, type SharedStore, Unavailable, type WriteTx } from "../src/store/store.ts";
import { afterMigration, olderData } from "./support/older-data.ts";
import { expectOwnership } from "./support/ownership.ts";
import { searchPatiently } from "./support/search.ts";
import { agentFixture } from "./support/store-contract/agent-fixture.ts";
import { endsIn, readLog } from "./support/store-contract/changes.ts";
import {
  type Chat,
  conversationOf,
  emitMarker,
  newAccount,
  newAgent,
  newGroup,
  openFixture,
  START,
  send,
  times,
} from "./support/store-contract/fixture.ts";
import { storeContract } from "./support/store-contract/index.ts";

/** Released are 1, and those from 54 on. */
const UNRELEASED = 2;

/** Its own: while a transaction runs, stores in other databases of a server wait for missing entries. */
let postgres: TestPostgres;
/** A database with the schema, which is empty before each test that uses it. */
let shared: { url: string; empty(): Promise<void>; drop(): Promise<void> };
beforeAll(async () => {
  postgres = await startPostgres();
  const { url, drop } = await postgres.database();
  await (await open(url)).close();
  const sql = new SQL({ url, max: 1 });
  shared = {
    url,
    empty: async () => void (await sql.unsafe(EMPTY)),
    drop: async () => {
      await sql.close();
      await drop();
    },
  };
});
afterAll(async () => {
  await shared.drop();
  await postgres[Symbol.asyncDispose]();
});
afterEach(() => void setSystemTime());

const open = (url: string, logLimits: Partial<LogLimits> = {}) =>
  openPostgresStore({ url, tls: false, logLimits });

async function execute(url: string, statement: string): Promise<Record<string, unknown>[]> {
  await using sql = new SQL({ url, max: 1 });
  return await sql.unsafe(statement);
}

/**
 * Empties a database, which is faster than creating one. Deleting few rows is faster than TRUNCATE,
 * which makes new files for all tables and indexes. As all rows go, foreign keys need no checks.
 * Transactions that a failed test has left open would lock the tables.
 */
const EMPTY = `DO $$
  DECLARE name text;
  BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND state LIKE 'idle in transaction%';
    PERFORM set_config('session_replication_role', 'replica', true);
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public'
      AND tablename NOT IN ('schema_version', 'history', 'name_counter')
    LOOP
      EXECUTE format('DELETE FROM %I', name);
    END LOOP;
    PERFORM setval(sequencename::regclass, 1, false) FROM pg_sequences WHERE schemaname = 'public';
    UPDATE name_counter SET seq = 0;
  END $$`;

describe("the contract", () => {
  /** The store of an earlier test: opening one takes longer than most tests. */
  let idle: SharedStore | null = null;
  afterAll(() => idle?.close());

  storeContract("PostgreSQL", async () => {
    const first = idle ?? (await open(shared.url));
    idle = null;
    let store = first;
    let isReusable = true;
    return {
      store: {
        ...first,
        // A store remembers which entries of the log it has not waited for. Their ids begin anew.
        get changes() {
          isReusable = false;
          return first.changes;
        },
      },
      reopen: async (logLimits) => {
        isReusable = false;
        await store.close();
        store = await open(shared.url, logLimits);
        return store;
      },
      storedEntries: async () => {
        const rows = await execute(shared.url, "SELECT body FROM changes ORDER BY id");
        return rows.map(({ body }) => body as string);
      },
      dispose: async () => {
        if (isReusable) idle = store;
        else await store.close();
        await shared.empty();
      },
    };
  });
});

test("whoever waits for a connection that is never made is told, and later the connection is made", async () => {
  await using proxy = await FaultyProxy.to(shared.url.replace(/^postgres/, "http"));
  proxy.silence((accepted) => accepted % 2 === 0);
  const url = new URL(shared.url);
  url.port = new URL(proxy.url).port;
  const pool = openPool({ url: url.href, tls: false }, 8);
  const some = connections(pool, 8);
  const useAll = () =>
    Promise.allSettled(
      times(8).map(() => some.use((connection) => connection.run("SELECT pg_sleep(0.2)"))),
    );
  const refused = (await useAll()).filter((each) => each.status === "rejected");
  expect(refused.length).toBeGreaterThan(0);
  for (const { reason } of refused) expect(reason).toBeInstanceOf(Unavailable);
  proxy.reset();
  expect((await useAll()).map(({ status }) => status)).toEqual(times(8).map(() => "fulfilled"));
  await some.close();
  await pool.close();
});

test("a server that stops answering is left for one that answers", async () => {
  const database = await postgres.database();
  await using proxy = await FaultyProxy.to(database.url.replace(/^postgres/, "http"));
  const url = new URL(database.url);
  url.port = new URL(proxy.url).port;
  const store = await openPostgresStore({ url: url.href, tls: false, answerTimeoutMs: 1000 });
  await store.write((tx) => newAccount(tx, { username: "alice" }));
  const found = () => store.read((tx) => tx.account("alice"));
  await found();

  proxy.stall("toServer", "toClient");
  const refused = [found(), store.write((tx) => newAccount(tx, { username: "bob" }))];
  for (const each of refused) {
    expect(await each.catch((error) => error)).toBeInstanceOf(Unavailable);
  }
  // The connections that lost their statements stay silent.
  proxy.reset();
  expect(await found()).not.toBeNull();
  await store.write((tx) => newAccount(tx, { username: "carol" }));
  await store.close();
  await database.drop();
});

test("units that are under way when the server hangs are refused before a lock wait would end", async () => {
  const database = await postgres.database();
  await using proxy = await FaultyProxy.to(database.url.replace(/^postgres/, "http"));
  const url = new URL(database.url);
  url.port = new URL(proxy.url).port;
  const store = await openPostgresStore({ url: url.href, tls: false });
  await store.write((tx) => newAccount(tx, { username: "alice" }));
  proxy.stall("toServer", "toClient");
  const refused = store
    .write((tx) => newAccount(tx, { username: "bob" }))
    .catch((error: unknown) => error);
  // A statement may wait for a lock for eight seconds, and for an answer for fifteen.
  expect(await Promise.race([refused, Bun.sleep(8000)])).toBeInstanceOf(Unavailable);
  expect(store.background.failing()).toContain("writes");
  // There are no connections any more: units wait for attempts to connect that others have begun.
  const found = (tx: Pick<ReadTx, "account">) => tx.account("alice");
  const units = Array.from({ length: 12 }, async (_, index) => {
    await Bun.sleep(400 * index);
    const startedAt = performance.now();
    const unit = [store.read, store.write, store.note][index % 3]?.(found);
    expect(await unit?.catch((error: unknown) => error)).toBeInstanceOf(Unavailable);
    return performance.now() - startedAt;
  });
  expect(Math.max(...(await Promise.all(units)))).toBeLessThan(4500);
  proxy.reset();
  await store.write((tx) => newAccount(tx, { username: "carol" }));
  await store.close();
  await database.drop();
});

test("a database that is read-only refuses units until it takes writes again", async () => {
  const database = await postgres.database();
  const store = await openPostgresStore({ url: database.url, tls: false });
  await store.write((tx) => newAccount(tx, { username: "alice" }));
  const setReadOnly = async (value: "on" | "off") => {
    const [, name] = /([^/]+)$/.exec(database.url) ?? [];
    await execute(
      postgres.url,
      `ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`,
    );
    await execute(
      postgres.url,
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
    );
  };
  await setReadOnly("on");
  const write = () => store.write((tx) => newAccount(tx, { username: "bob" }));
  const refusal = await write().catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(Unavailable);
  expect(String(refusal)).toContain("the database is read-only");
  expect(store.background.failing()).toContain("writes");
  await setReadOnly("off");
  await write();
  expect(store.background.failing()).not.toContain("writes");
  await store.close();
  await database.drop();
});

/** Several stores on an empty database, as of several nodes. */
async function nodes(count: number) {
  const stores = await Promise.all(times(count).map(() => open(shared.url)));
  return {
    url: shared.url,
    stores: stores as [SharedStore, ...SharedStore[]],
    [Symbol.asyncDispose]: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await shared.empty();
    },
  };
}

/** The same on a database of their own, for tests that change the schema. */
async function nodesOfTheirOwn(count: number) {
  const { url, drop } = await postgres.database();
  const stores = await Promise.all(times(count).map(() => open(url)));
  return {
    url,
    stores: stores as [SharedStore, ...SharedStore[]],
    [Symbol.asyncDispose]: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await drop();
    },
  };
}

/** Runs a statement that locks something, and keeps the lock until it is released. */
async function lock(url: string, statement: string) {
  const sql = new SQL({ url, max: 1 });
  const locked = Promise.withResolvers<void>();
  const freed = Promise.withResolvers<void>();
  const holding = sql.begin(async (tx) => {
    await tx.unsafe(statement);
    locked.resolve();
    await freed.promise;
  });
  await Promise.race([locked.promise, holding]);
  return {
    async release(): Promise<void> {
      freed.resolve();
      await holding;
      await sql.close();
    },
  };
}

/** Creates Alice, Bob and a group of both. */
const place = (store: SharedStore) =>
  store.write(async (tx) => {
    const alice = await newAccount(tx, { username: "alice" });
    const bob = await newAccount(tx, { username: "bob" });
    return { alice, bob, chat: await newGroup(tx, [alice, bob]) };
  });

const seqs = async (url: string, { id }: Chat) =>
  (await execute(url, `SELECT seq FROM messages WHERE conversation_id = ${id} ORDER BY seq`)).map(
    ({ seq }) => Number(seq),
  );

test("a method cannot change a conversation that it does not name, or that its unit does not own", async () => {
  await using cluster = await nodes(1);
  const [store] = cluster.stores;
  const { alice, chat } = await place(store);
  const another = await store.write((tx) => newGroup(tx, [alice]));
  await store.write(async (tx) => {
    await conversationOf(tx, chat);
    const { unit } = tx as unknown as { unit: Unit };
    await expectOwnership(() => unit.next(), chat.id, another.id);
  });
});

test("an account that is being added to a group is erased afterwards, and then added to none", async () => {
  await using cluster = await nodes(2);
  const [one, two] = cluster.stores as [SharedStore, SharedStore];
  const { alice, chat } = await place(one);
  const carol = await one.write((tx) => newAccount(tx, { username: "carol" }));
  const another = await one.write((tx) => newGroup(tx, [alice]));
  const add = async (tx: WriteTx, to: Chat) =>
    addMembers(tx, await conversationOf(tx, to), [carol], alice);
  const added = Promise.withResolvers<void>();
  const mayCommit = Promise.withResolvers<void>();
  const adding = one.write(async (tx) => {
    await add(tx, chat);
    added.resolve();
    await mayCommit.promise;
  });
  await added.promise;
  let isErased = false;
  const erasing = two
    .write((tx) => tx.eraseAccount(carol, { messages: false, at: START }))
    .then(() => {
      isErased = true;
    });
  const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  const hasEnded = async () => isErased || (await execute(cluster.url, waiting)).length > 0;
  await until(hasEnded, "the erasure, or that it waits for the lock");
  expect(isErased).toBe(false);
  mayCommit.resolve();
  await Promise.all([adding, erasing]);
  const refusal = await one.write((tx) => add(tx, another)).catch((error) => error.message);
  expect(refusal).toBe("not found: users carol");
});

describe("the schema", () => {
  test("is created once by nodes that start together", async () => {
    await using cluster = await nodesOfTheirOwn(6);
    expect(new Set(cluster.stores.map(({ installation }) => installation)).size).toBe(1);
    const [row] = await execute(cluster.url, "SELECT version FROM schema_version");
    expect(Number(row?.version)).toBe(NEWEST_SCHEMA);
  });

  /** Creates the schema of 0.1.0, with data. */
  async function createEarlier(url: string, data = ""): Promise<void> {
    await execute(
      url,
      `CREATE TABLE schema_version (one boolean PRIMARY KEY, version bigint NOT NULL,
         installation uuid NOT NULL);
       INSERT INTO schema_version VALUES (true, 1, '${Bun.randomUUIDv7()}');
       ${migrations[0]?.sql}
       ${data}`,
    );
  }

  /** Migrates a database on a connection that waits only so long for locks, while another one holds a lock. */
  async function migrateBeside(url: string, lock: string, lockTimeoutMs: number) {
    await using holder = new SQL({ url, max: 1 });
    const pool = openPool({ url, tls: false }, 1, { lock_timeout: `${lockTimeoutMs}` });
    let failure: unknown = null;
    const migrating = await holder.begin(async (tx) => {
      await tx.unsafe(lock);
      const migrated = migrate(pool).catch((error) => {
        failure = error;
      });
      const hasWaited = async () => {
        const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
          AND wait_event_type = 'Lock'
          AND clock_timestamp() - backend_start > interval '${2 * lockTimeoutMs} ms'`;
        return failure !== null || (await execute(url, waiting)).length > 0;
      };
      await until(hasWaited, "the migration has waited for longer than its timeout");
      return { migrated };
    });
    await migrating.migrated;
    await pool.close();
    expect(failure).toBeNull();
    const [row] = await execute(url, "SELECT version FROM schema_version");
    expect(Number(row?.version)).toBe(NEWEST_SCHEMA);
  }

  test("is waited for while another node migrates it, longer than for other locks", async () => {
    const { url, drop } = await postgres.database();
    await (await open(url)).close();
    await migrateBeside(url, "SELECT 1 FROM schema_version FOR UPDATE", 100);
    await drop();
  });

  test("is migrated once a table is free that others used for longer than the timeout", async () => {
    const { url, drop } = await postgres.database();
    await createEarlier(url);
    await migrateBeside(url, "LOCK TABLE accounts IN ACCESS SHARE MODE", 500);
    await drop();
  });

  test("of a newer version is refused", async () => {
    await using cluster = await nodesOfTheirOwn(1);
    await execute(cluster.url, "UPDATE schema_version SET version = 1000");
    const refusal = await open(cluster.url).catch((error: Error) => error.message);
    expect(refusal).toContain("newer version");
  });

  test("of an unreleased version is refused", async () => {
    await using cluster = await nodesOfTheirOwn(1);
    await execute(cluster.url, `UPDATE schema_version SET version = ${UNRELEASED}`);
    const refusal = await open(cluster.url).catch((error: Error) => error.message);
    expect(refusal).toContain("never released");
  });

  test.each(afterMigration)("of 0.1.0 is migrated with its data: %s", async (_, check) => {
    const { url, drop } = await postgres.database();
    await createEarlier(url, olderData("PostgreSQL"));
    const store = await open(url);
    await store.read(check);
    await store.close();
    await drop();
  });

  test("makes new names visible in the order of their versions, from any node", async () => {
    await using cluster = await nodes(3);
    const { alice, bob } = await place(cluster.stores[0]);
    const names = times(30).map((n) => {
      const store = cluster.stores[n % 3] as SharedStore;
      const who = n % 2 === 0 ? alice : bob;
      return store.write((tx) => tx.setDisplayName(who.id, `${n}`));
    });
    expect((await Promise.all(names)).sort((one, other) => one - other)).toEqual(
      times(30).map((n) => n + 1),
    );
    const { seq, accounts } = await cluster.stores[0].read((tx) => tx.renamedSince(alice.id, 0));
    expect([seq, Math.max(...accounts.map(({ version }) => version))]).toEqual([30, 30]);
  });
});

describe("a search", () => {
  test("that takes too long fails, and nothing else waits for it", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const { alice, chat } = await place(store);
    await store.write((tx) => send(tx, chat, alice, "needle"));
    const query = { words: ["needle"], viewerId: alice.id, limit: 10 };
    const find = () => store.search(query);
    await using blocker = new SQL({ url: cluster.url, max: 1 });
    await blocker.begin(async (sql) => {
      await sql.unsafe("LOCK TABLE search IN ACCESS EXCLUSIVE MODE");
      const searches = Promise.allSettled([find(), find(), find()]);
      expect(await store.read((tx) => tx.account("alice"))).toMatchObject({ id: alice.id });
      for (const outcome of await searches) {
        expect(outcome).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
      }
    });
    expect(await searchPatiently(store, query)).toHaveLength(1);
  });

  test("that checks many long messages leaves time for other work", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const { alice, chat } = await place(store);
    const limit = 101;
    // They have all pairs of letters of the word, and many times almost the whole word.
    const content = `${"あ".repeat(10_000)} あい いう`;
    for (let sent = 0; sent < limit; sent++) {
      await store.write((tx) => send(tx, chat, alice, content));
    }
    const word = `${"あ".repeat(250)}いう`;
    const timeline = [performance.now()];
    const watch = setInterval(() => timeline.push(performance.now()), 1);
    const hits = await searchPatiently(store, { words: [word], viewerId: alice.id, limit });
    clearInterval(watch);
    expect(hits).toEqual([]);
    timeline.push(performance.now());
    const pauses = timeline.slice(1).map((at, place) => at - (timeline[place] ?? at));
    const total = pauses.reduce((sum, each) => sum + each, 0);
    expect(Math.max(...pauses)).toBeLessThan(total / 2);
  });
});

describe("a restore from a backup", () => {
  const historyOf = async (url: string) => {
    const store = await open(url);
    const id = await store.read((tx) => tx.historyId());
    await store.close();
    return id;
  };
  const shell = async (command: string) => {
    const { exitCode, stderr } = Bun.spawnSync([
      "sh",
      "-c",
      `PATH="$PATH:${postgres.bin}"; ${command}`,
    ]);
    if (exitCode !== 0) throw new Error(`${command}: ${stderr}`);
  };

  test("into the same database or into another begins another history", async () => {
    await using cluster = await nodesOfTheirOwn(1);
    const { url, stores } = cluster;
    const { alice, chat } = await place(stores[0]);
    const dump = `/tmp/${Bun.randomUUIDv7()}.dump`;
    await shell(`pg_dump --format=custom --file=${dump} ${url}`);
    await stores[0].write((tx) => send(tx, chat, alice, "lost"));
    const before = await historyOf(url);
    await stores[0].close();
    const other = await postgres.database();
    await shell(`pg_restore --clean --if-exists --dbname=${url} ${dump}`);
    await shell(`pg_restore --dbname=${other.url} ${dump}; rm ${dump}`);
    const after = await historyOf(url);
    expect(after).not.toBe(before);
    expect(await historyOf(url)).toBe(after);
    expect(await historyOf(other.url)).not.toBe(before);
    await other.drop();
  });

  test("to a point in time begins another history, and a crash does not", async () => {
    await using own = await startPostgres();
    const before = await historyOf(own.url);
    await own.kill();
    await own.start();
    expect(await historyOf(own.url)).toBe(before);
    await own.kill();
    appendFileSync(join(own.data, "postgresql.conf"), "restore_command = 'false'\n");
    writeFileSync(join(own.data, "recovery.signal"), "");
    await own.start();
    // The server accepts connections before the recovery has ended, and is read-only until then.
    const recovering = "SELECT pg_is_in_recovery() AS yes";
    while ((await execute(own.url, recovering))[0]?.yes) await Bun.sleep(50);
    expect(await historyOf(own.url)).not.toBe(before);
  });

  test("is detected by an owner of the database without further rights", async () => {
    await execute(postgres.url, "CREATE ROLE owner LOGIN");
    await execute(postgres.url, "CREATE DATABASE owned OWNER owner");
    const url = postgres.url.replace("parley@", "owner@").replace(/postgres$/, "owned");
    expect(await historyOf(url)).toMatch(/^[0-9a-f-]{36}$/);
    await execute(postgres.url, "DROP DATABASE owned");
    await execute(postgres.url, "DROP ROLE owner");
  });
});

describe("the connection", () => {
  test("is encrypted, and the server verified, as DATABASE_URL asks", async () => {
    using own = selfSigned();
    await using secure = await startPostgres({ certificate: own });
    const reach = async (parameters: string) => {
      const DATABASE_URL = `postgres://parley@localhost:${secure.port}/postgres?${parameters}`;
      const { database } = readConfig({ DATABASE_URL });
      if (!database) throw new Error("no database was read");
      const store = await openPostgresStore({ ...database });
      const connected = () =>
        execute(
          secure.url,
          "SELECT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity USING (pid) WHERE application_name = 'parley'",
        );
      const rows = await connected();
      await store.close();
      // The server closes them later.
      await until(async () => (await connected()).length === 0, "no connection is open");
      return rows.length > 0 && rows.every(({ ssl }) => ssl);
    };
    expect(await reach("sslmode=disable")).toBe(false);
    expect(await reach("sslmode=require")).toBe(true);
    expect(await reach(`sslmode=verify-full&sslrootcert=${own.cert}`)).toBe(true);
    await expect(reach("sslmode=verify-full")).rejects.toThrow();
  });
});

test("changes keep the order of a conversation when the response to a COMMIT is late", async () => {
  await using cluster = await nodes(1);
  const { chat } = await place(cluster.stores[0]);
  const pool = openPool({ url: cluster.url, tls: false }, 3);
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let commits = 0;
  /** Real connections, but the response to the first COMMIT comes after that to the second. */
  const late = (real: Connections): Connections => ({
    close: real.close,
    use: (work) =>
      real.use((connection) =>
        work({
          run: async <Row>(sql: string, values?: readonly unknown[]) => {
            const rows = await connection.run<Row>(sql, values);
            if (sql !== "COMMIT") return rows;
            if (++commits > 1) second.resolve();
            else {
              first.resolve();
              await second.promise;
            }
            return rows;
          },
        }),
      ),
  });
  const announced: Change[] = [];
  const lane = writeLane({
    connections: late(connections(pool, 2)),
    lockWaitConnections: connections(pool, 1),
    order: commitOrder(),
    log: async () => null,
    wasCommitted: async () => false,
    committed: (announcements) => announced.push(...announcements),
  });
  const announce = (name: string) =>
    lane.enter(async (unit) => {
      await unit.own(chat.id);
      unit.emit({ kind: "session_ended", session_id: name });
    });
  const one = announce("one");
  await first.promise;
  await Promise.all([one, announce("two")]);
  expect(announced).toEqual([
    { kind: "session_ended", session_id: "one" },
    { kind: "session_ended", session_id: "two" },
  ]);
  await lane.close();
  await pool.close();
});

test("a listener that throws holds up no later change of the conversation", async () => {
  await using cluster = await nodes(1);
  const { alice, chat } = await place(cluster.stores[0]);
  const store = cluster.stores[0];
  let calls = 0;
  store.onCommit(() => {
    if (++calls === 1) throw new Error("a listener failed");
  });
  const warned = new Promise((resolve) => process.once("warning", resolve));
  await store.write((tx) => send(tx, chat, alice, "one"));
  await store.write((tx) => send(tx, chat, alice, "two"));
  expect(calls).toBe(2);
  expect(String(await warned)).toContain("a listener failed");
});

test.each(["COMMIT", "ROLLBACK"])(
  "changes are announced exactly if they are stored when the connection breaks after %s",
  async (outcome) => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const { chat } = await place(store);
    const pool = openPool({ url: cluster.url, tls: false }, 3);
    let commits = 0;
    const breaking = (real: Connections): Connections => ({
      close: real.close,
      use: (work) =>
        real.use((connection) =>
          work({
            run: async <Row>(sql: string, values?: readonly unknown[]) => {
              if (sql !== "COMMIT" || ++commits > 1) return connection.run<Row>(sql, values);
              await connection.run<Row>(outcome);
              throw new Unavailable("the database cannot be reached");
            },
          }),
        ),
    });
    const announced: Change[] = [];
    const lane = writeLane({
      connections: breaking(connections(pool, 2)),
      lockWaitConnections: connections(pool, 1),
      order: commitOrder(),
      log: changeWriter("a node"),
      wasCommitted: (entry) => wasCommitted(store.changes, entry, () => false),
      committed: (changes) => announced.push(...changes),
    });
    const announce = (name: string) =>
      lane.enter(async (unit) => {
        await unit.own(chat.id);
        unit.emit({ kind: "session_ended", session_id: name });
      });
    await expect(announce("in doubt")).rejects.toThrow(Unavailable);
    await announce("after");
    const stored = endsIn(await readLog(store));
    await until(() => announced.length >= stored.length, "all that is stored was announced");
    await Bun.sleep(20);
    const names = announced.map((change) => change.kind === "session_ended" && change.session_id);
    expect(names.toSorted()).toEqual(stored.toSorted());
    expect(stored).toHaveLength(outcome === "COMMIT" ? 2 : 1);
    await lane.close();
    await pool.close();
  },
);

describe("several nodes", () => {
  test("count a conversation without gaps and repeats", async () => {
    await using cluster = await nodes(3);
    const { stores, url } = cluster;
    const { alice, bob, chat } = await place(stores[0]);
    const others = await Promise.all(
      times(5).map(() => stores[0].write((tx) => newGroup(tx, [alice, bob]))),
    );
    const chats = [chat, chat, chat, ...others];
    const sent = await Promise.all(
      times(600).map((n) =>
        (stores[n % 3] as SharedStore).write((tx) =>
          send(tx, chats[n % chats.length] as Chat, n % 2 ? alice : bob, `${n}`),
        ),
      ),
    );
    for (const each of new Set(chats)) {
      const mine = sent.filter((message) => message.conversation_id === each.uuid);
      const all = times(mine.length).map((n) => n + 1);
      expect(mine.map(({ seq }) => seq).toSorted((one, other) => one - other)).toEqual(all);
      expect(await seqs(url, each)).toEqual(all);
    }
  });

  test("make one message of one client_msg_id, one conversation of one pair, one account of one name", async () => {
    await using cluster = await nodes(3);
    const { stores } = cluster;
    const { alice, bob, chat } = await place(stores[0]);
    const on = (n: number) => stores[n % 3] as SharedStore;
    const options = { client_msg_id: "same", reply_to_id: null, mentions: [], at: START };
    const sent = await Promise.all(
      times(30).map((n) =>
        on(n).write(async (tx) => {
          const conversation = await tx.conversation(chat.uuid, alice.id);
          if (!conversation) throw new Error("the chat is missing");
          return tx.insertMessage({ conversation, sender: alice, content: `${n}`, ...options });
        }),
      ),
    );
    expect(sent.filter((message) => message !== null)).toHaveLength(1);
    const pair = [alice.id, bob.id] as const;
    const direct = await Promise.all(
      times(12).map((n) =>
        on(n).write(async (tx) => {
          const known = await tx.directConversation(pair);
          if (known !== null) return known;
          const uuid = Bun.randomUUIDv7();
          const made = { uuid, kind: "direct", title: null, created_by: alice.id } as const;
          return tx.insertConversation({ ...made, direct: pair, at: START });
        }),
      ),
    );
    expect(new Set(direct).size).toBe(1);
    const names = await Promise.all(
      times(12).map((n) =>
        on(n).write((tx) =>
          tx.insertAccount({ username: "carol", kind: "human", display_name: `${n}`, at: START }),
        ),
      ),
    );
    expect(names.filter((account) => account !== null)).toHaveLength(1);
  });

  test("make one account for an OIDC identity that signs in on several nodes at once", async () => {
    await using cluster = await nodes(3);
    const HERE = { address: "127.0.0.1", network: "127.0.0.1", user_agent: null };
    const expires_at = Date.now() + 60_000;
    const identity = {
      issuer: "https://id.example.com",
      subject: "dora-1",
      requestedName: "dora",
      display_name: "Dora",
    };
    const oidcTokens = { recognises: () => true, verify: async () => ({ identity, expires_at }) };
    const doors = cluster.stores.map((store) => {
      const audit = createAuditLog(createLogger("silent"), store);
      return createAuthenticator({
        store,
        oidcTokens,
        oidcAccounts: createOidcAccounts({ audit, providers: new Map(), operators: [] }),
        limits: { session_days: 90 },
        audit,
      });
    });
    const entered = await Promise.all(
      times(24).map((n) => doors[n % 3]?.authenticate(`token ${n}`, HERE)),
    );
    expect(new Set(entered.map((who) => who?.account.id)).size).toBe(1);
    expect(new Set(entered.map((who) => who?.kind === "session" && who.session_id)).size).toBe(24);
  });

  test.each([
    ["finish units that need each other's conversations", 0],
    ["finish such units also when they are late, as on a busy machine", 10_000],
  ])("%s", async (_, lateMs) => {
    await using cluster = await nodes(3);
    const { stores, url } = cluster;
    const { alice, bob, chat } = await place(stores[0]);
    const other = await stores[0].write((tx) => newGroup(tx, [alice, bob]));
    const writes = times(60).map((n) =>
      (stores[n % 3] as SharedStore).write(async (tx) => {
        const order = n % 2 ? [chat, other] : [other, chat];
        for (const each of order) await send(tx, each, alice, `${n}`);
      }),
    );
    if (lateMs > 0) setSystemTime(Date.now() + lateMs);
    await Promise.all(writes);
    expect(await seqs(url, chat)).toEqual(times(60).map((n) => n + 1));
    expect(await seqs(url, other)).toEqual(times(60).map((n) => n + 1));
  });

  test("wait only for writers of the same conversation", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const { alice, bob, chat } = await place(store);
    const other = await store.write((tx) => newGroup(tx, [alice, bob]));
    await using sql = new SQL({ url: cluster.url, max: 1 });
    const freed = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const holding = sql.begin(async (tx) => {
      await tx.unsafe(`SELECT 1 FROM counters WHERE conversation_id = ${chat.id} FOR UPDATE`);
      held.resolve();
      await freed.promise;
    });
    await held.promise;
    let done = 0;
    const waiting = times(5).map((n) =>
      store.write((tx) => send(tx, chat, alice, `${n}`)).then(() => done++),
    );
    for (const n of times(20)) await store.write((tx) => send(tx, other, bob, `${n}`));
    expect(done).toBe(0);
    freed.resolve();
    await holding;
    await Promise.all(waiting);
    expect(await seqs(cluster.url, chat)).toEqual([1, 2, 3, 4, 5]);
  });

  test("wait only for writers of the same account", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const { alice, bob, chat } = await place(store);
    const held = await lock(
      cluster.url,
      `SELECT 1 FROM accounts WHERE id = ${alice.id} FOR UPDATE`,
    );
    let isDone = false;
    const waiting = Promise.all([
      store.write((tx) => tx.setMetadata(alice.id, { plan: "free" })),
      store.write((tx) => tx.setPassword(alice.id, "hash")),
      store.write((tx) => tx.setSuspended(alice.id, START)),
      store.write((tx) => tx.setAddedBy(alice.id, "known")),
    ]).then(() => {
      isDone = true;
    });
    for (const n of times(5)) await store.write((tx) => send(tx, chat, bob, `${n}`));
    expect(isDone).toBe(false);
    await held.release();
    await waiting;
  });

  test("renew leases while writes, and changes of some of the turns, wait", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const { alice, chat } = await place(store);
    const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
    const other = await store.write((tx) => newGroup(tx, [alice, agent]));
    await store.write(async (tx) => {
      for (const each of [chat, other]) {
        const trigger_uuid = (await send(tx, each, alice, "question")).id;
        const rest = { open_ended: true, refusal: null, most_waiting: 1, at: START };
        await tx.queueTurn({ agent_id: agent.id, conversation_id: each.id, trigger_uuid, ...rest });
      }
    });
    const { turns } = await store.write((tx) => tx.claimTurns("here", 0, 2));
    const ids = turns.map(({ id }) => id);
    const table = await lock(cluster.url, "LOCK TABLE messages IN SHARE ROW EXCLUSIVE MODE");
    const row = await lock(cluster.url, `SELECT 1 FROM turns WHERE id = ${ids[0]} FOR UPDATE`);
    const waiting = store.write((tx) => send(tx, chat, alice, "waits"));
    const renew = (leaseMs: number) =>
      store.note(async (tx) => {
        await tx.renewNode("here", leaseMs);
        await tx.renewLeases("here", ids, leaseMs);
      });
    await renew(60_000);
    await Promise.all([table.release(), row.release(), waiting]);
    const abandoned = async (node: string) =>
      (await store.write((tx) => tx.abandonedTurns(node))).map(({ id }) => id);
    // The lease of the turn that was locked has expired, but its node is alive.
    expect(await abandoned("there")).toEqual([]);
    expect(await abandoned("here")).toEqual(ids.slice(0, 1));

    // At a stop they are released, so that other nodes take the turns over.
    await renew(60_000);
    const streaming = await lock(cluster.url, `SELECT 1 FROM turns WHERE id = ${ids[0]} FOR SHARE`);
    const releasing = renew(0);
    await streaming.release();
    await releasing;
    expect(await abandoned("there")).toEqual(ids);
  });

  test("share a transaction after they have waited for writers of many conversations", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const { alice, bob } = await place(store);
    const chats = await store.write((tx) =>
      Promise.all(times(20).map(() => newGroup(tx, [alice, bob]))),
    );
    const before = await store.changes.head();
    await using sql = new SQL({ url: cluster.url, max: 1 });
    await sql.unsafe("BEGIN");
    const ids = chats.map(({ id }) => id).join();
    await sql.unsafe(`SELECT 1 FROM counters WHERE conversation_id IN (${ids}) FOR UPDATE`);
    const sent = chats.map((chat) => store.write((tx) => send(tx, chat, alice, "hello")));
    const waiting = "SELECT 1 FROM pg_locks WHERE NOT granted";
    while ((await sql.unsafe(waiting)).length === 0) await Bun.sleep(2);
    await sql.unsafe("COMMIT");
    await Promise.all(sent);
    expect(await readLog(store, before)).toHaveLength(1);
  });
});

test("reads that fail together are rejected, not repeated for ever", async () => {
  await using cluster = await nodesOfTheirOwn(1);
  const [store] = cluster.stores;
  const { alice, bob, chat } = await place(store);
  const other = await store.write((tx) => newGroup(tx, [alice, bob]));
  await execute(cluster.url, "ALTER TABLE counters RENAME COLUMN agent_participants TO renamed");
  const reads = [chat, other].map(({ uuid }) =>
    store.read((tx) => tx.conversation(uuid, alice.id)),
  );
  const outcomes = await Promise.allSettled(reads);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

describe("units that lock several accounts at once", () => {
  type People = [alice: number, bob: number, carol: number, dave: number];
  const people = ["alice", "bob", "carol", "dave"];
  const fourPeople = (store: SharedStore) =>
    store.write((tx) => Promise.all(people.map((username) => newAccount(tx, { username }))));

  test("do not wait for each other forever", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const [alice, bob, carol, dave] = (await fourPeople(store)).map(({ id }) => id) as People;
    const lockAfter = (first: number, ...rest: number[]) =>
      store.write(async (tx) => {
        await tx.lockUnerased([first]);
        await tx.lockUnerased(rest);
      });
    await Promise.all([
      lockAfter(alice, bob, carol),
      lockAfter(bob, alice),
      lockAfter(carol, dave),
    ]);
    expect(await store.write((tx) => tx.account("alice"))).toMatchObject({ id: alice });
  });

  test("get no account after they have failed at another one", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const [alice, bob] = (await fourPeople(store)).map(({ id }) => id) as People;
    const held = await lock(cluster.url, `SELECT 1 FROM accounts WHERE id = ${alice} FOR UPDATE`);
    const first = store.write(async (tx) => {
      await tx.lockUnerased([bob]);
      await tx.historyId();
    });
    const both = store.write((tx) => tx.lockUnerased([alice, bob]));
    const last = store.write((tx) => tx.lockUnerased([bob]));
    await Promise.all([first, last]);
    await held.release();
    expect(await both).toHaveLength(2);
  });
});

describe("the change log under concurrent transactions", () => {
  const insert = (name: string) =>
    `INSERT INTO changes (at, node, body) SELECT 0, 'other',
       '[{"kind":"session_ended","session_id":"${name}"}]' WHERE pg_current_xact_id() IS NOT NULL`;

  /** A store, and a transaction of another node that is under the control of the test. */
  async function otherNode() {
    const cluster = await nodes(1);
    const other = new SQL({ url: cluster.url, max: 1 });
    await other.unsafe("BEGIN");
    const [store] = cluster.stores;
    return {
      store,
      url: cluster.url,
      run: (sql: string) => other.unsafe(sql),
      end: (name: string) => store.write((tx) => emitMarker(tx, name)),
      read: async (after: number) => endsIn(await readLog(store, after)),
      [Symbol.asyncDispose]: async () => {
        await other.close();
        await cluster[Symbol.asyncDispose]();
      },
    };
  }

  test("an entry that commits late is not skipped", async () => {
    await using other = await otherNode();
    const { store, read, run, end } = other;
    await end("first");
    await run(insert("late"));
    await end("second");
    expect(await read(0)).toEqual(["first"]);
    const head = await store.changes.head();
    /** A read waits for the missing entry, but not for long. */
    const next = async (): Promise<string[]> => {
      const found = await read(head);
      return found.length > 0 ? found : next();
    };
    const waiting = next();
    await run("COMMIT");
    expect(await waiting).toEqual(["late", "second"]);
    expect(await read(0)).toEqual(["first", "late", "second"]);
    expect(await store.changes.head()).toBe(head + 2);
  });

  test("an entry whose transaction is newer than the one after it is not skipped", async () => {
    await using other = await otherNode();
    await using older = new SQL({ url: other.url, max: 1 });
    await older.unsafe("BEGIN");
    await older.unsafe("SELECT pg_current_xact_id()");
    await other.run(insert("late"));
    await older.unsafe(insert("second"));
    await older.unsafe("COMMIT");
    // The newest transaction that has ended is now older than the one that is still running.
    expect(await other.read(0)).toEqual([]);
    expect(await other.store.changes.head()).toBe(0);
    await other.run("COMMIT");
    expect(await other.read(0)).toEqual(["late", "second"]);
  });

  test("a transaction that rolls back after it took its id delays nothing", async () => {
    await using other = await otherNode();
    const { store, read, run, end } = other;
    await end("first");
    await run(insert("lost"));
    await run("ROLLBACK");
    await end("second");
    expect(await read(0)).toEqual(["first", "second"]);
    await run("BEGIN");
    await run(insert("lost too"));
    await end("third");
    const waiting = store.changes.head();
    await run("ROLLBACK");
    await waiting;
    const head = await store.changes.head();
    expect(await read(0)).toEqual(["first", "second", "third"]);
    expect(await read(head)).toEqual([]);
    expect(await read(head - 1)).toEqual(["third"]);
  });

  test("transactions that have written nothing delay nothing", async () => {
    await using other = await otherNode();
    const { read, run, end } = other;
    await run("SELECT count(*) FROM changes");
    await using aborted = new SQL({ url: other.url, max: 1 });
    await aborted.unsafe("BEGIN");
    await aborted.unsafe(insert("lost"));
    await aborted.unsafe("ROLLBACK");
    await end("first");
    expect(await read(0)).toEqual(["first"]);
  });

  test("a node that opens the store later reads what others have written", async () => {
    await using cluster = await nodes(2);
    const [one, two] = cluster.stores as [SharedStore, SharedStore];
    const names = times(60).map((n) => `${n}`);
    const reading = (async () => {
      const seen: string[] = [];
      let cursor = 0;
      while (seen.length < names.length) {
        const page = (await two.changes.read(cursor, 5)) ?? [];
        cursor = page.at(-1)?.cursor ?? cursor;
        seen.push(...endsIn(page));
      }
      return seen;
    })();
    await Promise.all(
      names.map((name, n) => (n % 2 ? one : two).write((tx) => emitMarker(tx, name))),
    );
    expect((await reading).toSorted()).toEqual(names.toSorted());
    expect(await two.changes.head()).toBe(await one.changes.head());
  });
});

describe("an answer of which a part was lost", () => {
  test("gets no more text", async () => {
    await using cluster = await nodes(1);
    const [store] = cluster.stores;
    const opened = {
      store,
      reopen: async () => store,
      storedEntries: async () => [],
      dispose: async () => {},
    };
    const { begin, append, turn } = await agentFixture(await openFixture(async () => opened));
    const { id } = await begin();
    expect(await append(id, "Grü", 4, true)).toBe(true);
    expect(await append(id, "ße", 7)).toBe(true);
    await execute(cluster.url, "DELETE FROM chunks WHERE byte_offset = 7");
    expect(await append(id, " an alle", 15)).toBe(false);
    const row = (await turn(id))?.message_id ?? 0;
    expect(await store.read((tx) => tx.streamed(row))).toBe("Grü");
  });
});

test("background work that fails is counted and reported until it succeeds again", async () => {
  const database = await postgres.database();
  const store = await openPostgresStore({
    url: database.url,
    tls: false,
    logLimits: { pruneEveryMs: 20 },
  });
  const reports: [kind: string, failed: boolean][] = [];
  store.background.onChange((kind, error) => reports.push([kind, error !== null]));
  await execute(database.url, "ALTER TABLE changes RENAME TO changes_aside");
  await until(() => store.background.failing().includes("pruning"), "pruning fails");
  await place(store);
  await execute(database.url, "ALTER TABLE changes_aside RENAME TO changes");
  await until(() => store.background.failing().length === 0, "pruning succeeds again");
  expect(reports).toEqual([
    ["pruning", true],
    ["pruning", false],
  ]);
  expect(store.background.failures().get("pruning")).toBeGreaterThan(0);
  await store.close();
  await database.drop();
});

test("a unit may need a row in two statements at once, also while others own it", async () => {
  await using own = await nodes(1);
  const [store] = own.stores;
  const { alice, chat } = await place(store);
  const twice = () =>
    store.write(async (tx) => {
      const seen = await Promise.all(
        [chat, chat].map(({ uuid }) => tx.conversation(uuid, alice.id)),
      );
      await send(tx, chat, alice, "twice");
      return seen.map((each) => each?.seq);
    });
  const once = () => store.write((tx) => send(tx, chat, alice, "once"));
  expect(await twice()).toEqual([0, 0]);
  const [, first, , second] = await Promise.all([once(), twice(), once(), twice()]);
  for (const [one, other] of [first, second]) expect(one).toBe(other as number);
  expect(await seqs(own.url, chat)).toEqual([1, 2, 3, 4, 5]);
});

describe("a unit during which its process is paused", () => {
  test.each(["before", "after"])("is run again if that was %s its write", async (when) => {
    await using own = await nodes(1);
    const [store] = own.stores;
    const { alice, chat } = await place(store);
    let isPaused = false;
    /** The server closes the connection meanwhile, and gives up its locks. */
    async function pause(): Promise<void> {
      if (isPaused) return;
      isPaused = true;
      const isOpen = `datname = current_database() AND state = 'idle in transaction'`;
      await execute(
        own.url,
        `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE ${isOpen}`,
      );
      setSystemTime(Date.now() + 20_000);
    }
    await store.write(async (tx) => {
      await tx.account("alice");
      if (when === "before") await pause();
      await send(tx, chat, alice, "late");
      if (when === "after") await pause();
    });
    expect(isPaused).toBe(true);
    expect(await seqs(own.url, chat)).toEqual([1]);
  });
});

test("a node that is paused while it saves the cursor of a subscription delays no other", async () => {
  await using own = await nodes(1);
  const [store] = own.stores;
  const { alice, chat } = await place(store);
  const claim = (node: string, leaseMs: number) =>
    store.write((tx) => tx.claimSubscription("webhooks", node, leaseMs, 3));
  expect(await claim("one", 0)).toBe(3);
  const paused = await lock(own.url, "UPDATE subscriptions SET cursor = 4");
  const [claimed] = await Promise.all([
    claim("two", 60_000),
    store.write((tx) => send(tx, chat, alice, "meanwhile")),
  ]);
  expect(claimed).toBeNull();
  expect(await seqs(own.url, chat)).toEqual([1]);
  await paused.release();
  expect(await claim("two", 60_000)).toBe(4);
});

describe("a transaction that the server aborts for a reason that passes", () => {
  test.each([
    ["57014", "messages"],
    ["57014", "changes"],
    ["53200", "messages"],
    ["53200", "changes"],
  ])("with the code %s at a write to %s leaves a connection that works", async (state, table) => {
    await using own = await nodesOfTheirOwn(1);
    const [store] = own.stores;
    const { alice, chat } = await place(store);
    await execute(
      own.url,
      `CREATE SEQUENCE attempts;
       CREATE FUNCTION fail_once() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
         IF nextval('attempts') = 1 THEN RAISE EXCEPTION 'once' USING ERRCODE = '${state}'; END IF;
         RETURN NEW;
       END $$;
       CREATE TRIGGER fail_once BEFORE INSERT ON ${table}
         FOR EACH ROW EXECUTE FUNCTION fail_once()`,
    );
    for (const text of ["one", "two", "three"]) {
      await store.write(async (tx) => {
        await tx.account("alice");
        await send(tx, chat, alice, text);
        emitMarker(tx, text);
      });
    }
    expect(await seqs(own.url, chat)).toEqual([1, 2, 3]);
    const isAborted = "datname = current_database() AND state = 'idle in transaction (aborted)'";
    expect(await execute(own.url, `SELECT 1 FROM pg_stat_activity WHERE ${isAborted}`)).toEqual([]);
  });
});

describe("a database that goes away", () => {
  test("is waited for briefly, then everything is unavailable until it is back", async () => {
    await using own = await startPostgres();
    const { url } = await own.database();
    const store = await open(url);
    const { alice, chat } = await place(store);
    await store.write((tx) => send(tx, chat, alice, "before"));

    // A short outage is not noticed. The clock stands still: the start may take long.
    setSystemTime(Date.now());
    await own.kill();
    const patient = store.write((tx) => send(tx, chat, alice, "meanwhile"));
    const reader = store.read((tx) => tx.account("alice"));
    await own.start();
    expect((await patient).content).toBe("meanwhile");
    expect((await reader)?.username).toBe("alice");

    // A longer outage.
    setSystemTime();
    await own.kill();
    const outcomes = await Promise.allSettled([
      store.write((tx) => send(tx, chat, alice, "lost")),
      store.read((tx) => tx.account("alice")),
      store.note((tx) => tx.setAttempt(1, { tries: 1, input_tokens: null })),
      store.search({ words: ["before"], viewerId: alice.id, limit: 1 }),
      store.ready(),
    ]);
    for (const outcome of outcomes) {
      const reason = outcome.status === "rejected" && outcome.reason;
      expect(reason).toBeInstanceOf(Unavailable);
      expect(reason.parameters).toEqual({ retry_after: 1 });
    }

    await own.start();
    await store.ready();
    await store.write((tx) => send(tx, chat, alice, "after"));
    const texts = await execute(url, "SELECT content FROM messages ORDER BY seq");
    expect(texts.map(({ content }) => content)).toEqual(["before", "meanwhile", "after"]);
    await store.close();
  });

  test("keeps every acknowledged write, exactly once", async () => {
    await using own = await startPostgres();
    const { url } = await own.database();
    const store = await open(url);
    const { alice, chat } = await place(store);
    const acknowledged = new Set<string>();
    let over = false;
    let count = 0;
    const writing = times(8).map(async (writer) => {
      while (!over) {
        const content = `${writer}-${count++}`;
        const options = { client_msg_id: content };
        await store
          .write((tx) => send(tx, chat, alice, content, options))
          .then(
            () => acknowledged.add(content),
            () => {},
          );
      }
    });
    for (const round of times(3)) {
      const until = acknowledged.size + 50 * (round + 1);
      while (acknowledged.size < until) await Bun.sleep(1);
      await own.kill();
      await own.start();
    }
    over = true;
    await Promise.all(writing);
    const rows = await execute(url, "SELECT content, seq FROM messages ORDER BY seq");
    const stored = rows.map(({ content }) => String(content));
    expect(acknowledged.difference(new Set(stored)).size).toBe(0);
    expect(new Set(stored).size).toBe(stored.length);
    expect(rows.map(({ seq }) => Number(seq))).toEqual(times(rows.length).map((n) => n + 1));
    await store.close();
  });
});
