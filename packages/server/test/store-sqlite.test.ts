import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@parley/testkit/until.ts";
import type { Change } from "../src/changes/change.ts";
import type { AccountRecord } from "../src/store/accounts.ts";
import { backgroundRunner } from "../src/store/background-work.ts";
import type { MessageRecord } from "../src/store/message-records.ts";
import { type Indexer, indexerThread, type Task } from "../src/store/sqlite/background.ts";
import { type BatchWriter, batchWriter } from "../src/store/sqlite/batch-writer.ts";
import { keepLog, migrate, openDatabase } from "../src/store/sqlite/connection.ts";
import { openSqliteStore, type SqliteStoreOptions } from "../src/store/sqlite/index.ts";
import { startLogSync } from "../src/store/sqlite/log-sync.ts";
import { type MaintenanceOptions, startMaintenance } from "../src/store/sqlite/maintenance.ts";
import { migrations, NEWEST_SCHEMA } from "../src/store/sqlite/migrations.ts";
import { openIndexer, openSearcher } from "../src/store/sqlite/search.ts";
import { Connection, portOf } from "../src/store/sqlite/sql.ts";
import type { ReadTx, Store, WriteTx } from "../src/store/store.ts";
import { afterMigration, olderData } from "./support/older-data.ts";
import { expectOwnership } from "./support/ownership.ts";
import { indexesOf, recordStatements, wholeTableSteps } from "./support/query-plans.ts";
import { searchPatiently } from "./support/search.ts";
import { storeContract } from "./support/store-contract/index.ts";
import { blockThreadPool } from "./support/thread-pool.ts";

/** Released are 1, and those from 54 on. */
const UNRELEASED = 2;

/** A database with the schema. Copying it takes a quarter of the time of the migrations. */
const migrated = folder();
beforeAll(() => {
  const db = openDatabase(migrated.database);
  migrate(db);
  keepLog(db, false);
  db.close();
});
afterAll(() => migrated[Symbol.dispose]());

const statements = recordStatements();

storeContract("SQLite", async () => {
  const files = emptyStore();
  let store = openSqliteStore(files.database);
  return {
    store,
    reopen: async (logLimits = {}) => {
      await store.close();
      store = openSqliteStore(files.database, { logLimits });
      return store;
    },
    storedEntries: async () => {
      using db = new Database(files.database, { readonly: true });
      const rows = db.prepare<{ body: string }, []>("SELECT body FROM changes ORDER BY id").all();
      return rows.map(({ body }) => body);
    },
    dispose: async () => {
      await store.close();
      files[Symbol.dispose]();
    },
  };
});

describe("of the statements that the contract runs", () => {
  test("none reads a whole table", () => {
    expect(statements.size).toBeGreaterThan(300);
    using db = openDatabase(migrated.database);
    expect(wholeTableSteps(db, statements)).toEqual([]);
  });

  test("the one that prunes ended deliveries reads no pending ones", () => {
    const isPruning = (sql: string) =>
      sql.startsWith("DELETE FROM deliveries") && sql.includes("status <> 'pending'");
    const [sql = "", ...others] = [...statements].filter(isPruning);
    expect(others).toEqual([]);
    using db = openDatabase(migrated.database);
    expect(indexesOf(db, sql)).toEqual(["deliveries_ended", "deliveries_ended"]);
  });
});

test("a method cannot change a conversation that it does not name, or that its unit does not own", async () => {
  using files = emptyStore();
  using db = openDatabase(files.database);
  const unit = new Connection(db);
  unit.own(1);
  await expectOwnership(portOf(unit), 1, 2);
});

/** A temporary folder for one database. */
function folder() {
  const path = mkdtempSync(join(tmpdir(), "parley-store-"));
  return {
    path,
    database: join(path, "parley.db"),
    log: join(path, "parley.db-wal"),
    index: join(path, "parley-search.db"),
    [Symbol.dispose]: () => rmSync(path, { recursive: true }),
  };
}

/** The same with a database that has the schema, and no history yet. */
function emptyStore() {
  const files = folder();
  copyFileSync(migrated.database, files.database);
  return files;
}

/** Runs work with a store and closes it. */
async function withStore<Result>(
  path: string,
  work: (store: Store) => Promise<Result>,
  options: SqliteStoreOptions = {},
): Promise<Result> {
  const store = openSqliteStore(path, options);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const at = Date.UTC(2026, 10, 15);

async function conversation(store: Store) {
  return store.write(async (tx) => {
    const person = { username: "alice", kind: "human", display_name: "Alice", at } as const;
    const alice = (await tx.insertAccount(person)) as AccountRecord;
    const uuid = Bun.randomUUIDv7();
    const made = { uuid, kind: "group", title: null, created_by: alice.id, at } as const;
    await tx.insertMembers(await tx.insertConversation(made), [alice.id], at);
    return { alice, uuid };
  });
}

type Place = Awaited<ReturnType<typeof conversation>>;

async function say(tx: WriteTx, { alice, uuid }: Place, content: string): Promise<void> {
  const found = await tx.conversation(uuid, alice.id);
  if (!found) throw new Error("the conversation is missing");
  const plain = { client_msg_id: null, reply_to_id: null, mentions: [] };
  await tx.insertMessage({ conversation: found, sender: alice, content, ...plain, at });
}

const sayAll = (store: Store, place: Place, ...texts: string[]) =>
  store.write(async (tx) => {
    for (const text of texts) await say(tx, place, text);
  });

async function find(store: Store, { alice }: Place, word: string): Promise<string[]> {
  const hits = await searchPatiently(store, { words: [word], viewerId: alice.id, limit: 100 });
  const uuids = hits.map(({ uuid }) => uuid);
  const messages = await store.read((tx) => tx.messageViews(uuids, alice.id));
  return messages.map(({ content }) => content);
}

function versionOf(path: string): number | undefined {
  const db = new Database(path);
  const row = db.query<{ user_version: number }, []>("PRAGMA user_version").get();
  db.close();
  return row?.user_version;
}

function setVersion(path: string, version: number): void {
  const db = new Database(path);
  db.run(`PRAGMA user_version = ${version}`);
  db.close();
}

describe("the schema", () => {
  test("is created in a missing file", async () => {
    using files = folder();
    await withStore(files.database, (store) => store.ready());
    expect(versionOf(files.database)).toBe(NEWEST_SCHEMA);
  });

  test("is created in an empty file", async () => {
    using files = folder();
    writeFileSync(files.database, "");
    await withStore(files.database, conversation);
    expect(versionOf(files.database)).toBe(NEWEST_SCHEMA);
  });

  test("is not changed when it is up to date", async () => {
    using files = folder();
    const place = await withStore(files.database, conversation);
    await withStore(files.database, (store) => sayAll(store, place, "hello"));
    expect(versionOf(files.database)).toBe(NEWEST_SCHEMA);
  });

  test("of a newer version is refused, and the file is not changed", async () => {
    using files = folder();
    await withStore(files.database, conversation);
    setVersion(files.database, NEWEST_SCHEMA + 1);
    expect(() => openSqliteStore(files.database)).toThrow("newer version");
    expect(versionOf(files.database)).toBe(NEWEST_SCHEMA + 1);
  });

  test("of an unreleased version is refused, and the file is not changed", async () => {
    using files = folder();
    await withStore(files.database, conversation);
    setVersion(files.database, UNRELEASED);
    expect(() => openSqliteStore(files.database)).toThrow("never released");
    expect(versionOf(files.database)).toBe(UNRELEASED);
  });
});

describe("data of 0.1.0", () => {
  test.each(afterMigration)("is migrated: %s", async (_, check) => {
    using files = folder();
    const db = new Database(files.database);
    db.run(migrations[0]?.sql + olderData("SQLite"));
    db.close();
    setVersion(files.database, 1);
    await withStore(files.database, (store) => store.read(check));
    expect(versionOf(files.database)).toBe(NEWEST_SCHEMA);
  });
});

describe("the search index", () => {
  test("is rebuilt when its file is missing", async () => {
    using files = emptyStore();
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      await sayAll(store, made, "needle one", "needle two");
      expect(await find(store, made, "needle")).toHaveLength(2);
      return made;
    });
    for (const suffix of ["", "-wal", "-shm"]) rmSync(files.index + suffix, { force: true });
    await withStore(files.database, async (store) => {
      await sayAll(store, place, "needle three");
      expect(await find(store, place, "needle")).toEqual([
        "needle three",
        "needle two",
        "needle one",
      ]);
    });
    expect(existsSync(files.index)).toBe(true);
  });

  test.each([
    ["is no database at all", (file: string) => writeFileSync(file, "nonsense ".repeat(1000))],
    ["has another version", (file: string) => setVersion(file, 99)],
  ])("is rebuilt when its file %s", async (_, spoil) => {
    using files = emptyStore();
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      await sayAll(store, made, "needle");
      await find(store, made, "needle");
      return made;
    });
    spoil(files.index);
    await withStore(files.database, async (store) => {
      expect(await find(store, place, "needle")).toEqual(["needle"]);
    });
  });

  test("is rebuilt when any of its pages is corrupt", async () => {
    using files = emptyStore();
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      const filler = Array.from({ length: 50 }, (_, word) => `word${word}`).join(" ");
      await sayAll(store, made, ...Array.from({ length: 100 }, () => `needle ${filler}`));
      await find(store, made, "needle");
      return made;
    });
    const index = readFileSync(files.index);
    await withStore(files.database, (store) => sayAll(store, place, "needle later"));
    using messages = new Database(files.database);
    for (let page = 0; page < index.length; page += 4096) {
      const spoilt = Buffer.from(index).fill(0xff, page, page + 4096);
      writeFileSync(files.index, spoilt);
      const indexer = openIndexer(files.database, messages);
      const searcher = openSearcher(files.database);
      const search = () => {
        indexer.catchUp(1000);
        return searcher.find({ words: ["needle"], viewerId: place.alice.id, limit: 1000 });
      };
      try {
        search();
      } catch (error) {
        // A search that finds a corrupt page fails. The next one has a new index.
        expect(String(error)).toContain("malformed");
      }
      expect(search()).toHaveLength(101);
      searcher.close();
      indexer.close();
    }
  });

  test("is rebuilt when it is newer than the database, as after a restore", async () => {
    using files = emptyStore();
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      await sayAll(store, made, "needle kept");
      return made;
    });
    const backup = join(files.path, "backup");
    copyFileSync(files.database, backup);
    await withStore(files.database, async (store) => {
      await sayAll(store, place, "needle lost", "pin lost");
      await find(store, place, "needle");
    });
    copyFileSync(backup, files.database);
    await withStore(files.database, async (store) => {
      await sayAll(store, place, "other words", "needle new");
      expect(await find(store, place, "needle")).toEqual(["needle new", "needle kept"]);
    });
  });
});

describe("the log", () => {
  /** How often the log has restarted, from its header. */
  function restarts(log: string): number {
    const header = Buffer.alloc(32);
    const file = openSync(log, "r");
    readSync(file, header);
    closeSync(file);
    return header.readUInt32BE(12);
  }

  test("restarts under sustained writes without losing anything", async () => {
    using files = emptyStore();
    const { place, count } = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      const before = restarts(files.log);
      let written = 0;
      const filler = "x".repeat(50_000);
      // Writes without a pause until the log restarts, far beyond its intended size.
      while (restarts(files.log) === before && written < 100_000) {
        await Promise.all(
          Array.from({ length: 100 }, () =>
            store.write(async (tx) => {
              await say(tx, made, "hello");
              tx.emit({ kind: "session_ended", session_id: filler });
            }),
          ),
        );
        written += 100;
      }
      expect(restarts(files.log)).toBeGreaterThan(before);
      return { place: made, count: written };
    });
    await withStore(files.database, async (store) => {
      const [chat] = await store.read((tx) => tx.chats({ viewerId: place.alice.id, limit: 1 }));
      expect(chat?.seq).toBe(count);
    });
  });

  test("restarts at 128 MiB although there is always somebody who writes", async () => {
    using files = emptyStore();
    const fullPages = 32_768;
    // The file keeps the length that it had before the restart.
    const pages = () => Math.floor(statSync(files.log).size / (4096 + 24));
    await withStore(files.database, async (store) => {
      const place = await conversation(store);
      let isOver = false;
      const send = async () => {
        for (; !isOver; await Bun.sleep(5)) await sayAll(store, place, "hello");
      };
      // Commits also while the others wait for a sync: otherwise a checkpoint could end meanwhile, and
      // the log restart without a pause.
      const note = async () => {
        while (!isOver) await store.note((tx) => tx.renewHistory());
      };
      const senders = [send(), send(), send(), send(), note()];
      await until(() => pages() >= fullPages, "the log is full");
      const before = restarts(files.log);
      await until(
        () => restarts(files.log) > before || pages() > 4 * fullPages,
        "the log restarts or grows too long",
      );
      isOver = true;
      await Promise.all(senders);
      expect(restarts(files.log)).toBeGreaterThan(before);
      expect(pages()).toBeLessThan(4 * fullPages);
    });
  });

  test("is synced while all threads of the runtime's pool are blocked", async () => {
    using files = emptyStore();
    await withStore(files.database, async (store) => {
      const place = await conversation(store);
      await using _blocked = blockThreadPool(join(files.path, "pipe"));
      await sayAll(store, place, "hello");
    });
  });

  test("rejects a sync that fails, and all later ones", async () => {
    using files = emptyStore();
    // A device that cannot be synced.
    symlinkSync("/dev/null", files.log);
    const log = startLogSync(files.database);
    for (const _ of [1, 2]) {
      const error = await log.sync().catch((thrown: unknown) => thrown);
      expect(String(error)).toContain("EINVAL");
    }
    log.close();
  });

  test.each(["closed", "left open"])(
    "is kept, and the store stops, when the database file could not be written, and is %s at exit",
    async (ending) => {
      using files = emptyStore();
      const script = new URL("./support/refused-writes.ts", import.meta.url).pathname;
      const { stdout } = Bun.spawnSync([process.execPath, script, files.database, ending]);
      const { message_id, viewer_id, ...outcomes } = JSON.parse(stdout.toString());
      const diskError = expect.stringContaining("disk I/O error");
      expect(outcomes).toEqual({ write: diskError, read: diskError, ready: diskError });
      expect(statSync(files.log).size).toBeGreaterThan(0);
      await withStore(files.database, async (store) => {
        const [stored] = await store.read((tx) => tx.messageViews([message_id], viewer_id));
        expect(stored?.content).toStartWith("acknowledged");
      });
    },
  );

  test("is moved into the database when the store closes", async () => {
    using files = emptyStore();
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      await sayAll(store, made, "hello");
      return made;
    });
    expect(existsSync(files.log) ? readFileSync(files.log).length : 0).toBe(0);
    const copy = join(files.path, "copy.db");
    copyFileSync(files.database, copy);
    await withStore(copy, async (store) => {
      expect(await find(store, place, "hello")).toEqual(["hello"]);
    });
  });
});

describe("what the writer keeps of conversations", () => {
  /** Runs work that counts to `seq` between two reads by units that write. The second reads what is stored. */
  async function expectFresh(
    seq: number,
    work: (store: Store, place: Place, path: string) => Promise<unknown>,
  ) {
    using files = emptyStore();
    await withStore(files.database, async (store) => {
      const place = await conversation(store);
      const read = (tx: ReadTx) => tx.conversation(place.uuid, place.alice.id);
      const before = await store.write(read);
      await work(store, place, files.database);
      const after = await store.write(read);
      expect(after).not.toEqual(before);
      expect(after).toEqual(await store.read(read));
      await sayAll(store, place, "and on");
      expect([after?.seq, (await store.read(read))?.seq]).toEqual([seq, seq + 1]);
    });
  }
  const inChat = (
    store: Store,
    { alice, uuid }: Place,
    unit: (tx: WriteTx, id: number) => unknown,
  ) => store.write(async (tx) => unit(tx, (await tx.conversation(uuid, alice.id))?.id ?? 0));

  test("has the sends of every unit", () =>
    expectFresh(2, (store, place) => sayAll(store, place, "one", "two")));

  test("has no send that was undone", () =>
    expectFresh(2, async (store, place) => {
      const undone = store.write(async (tx) => {
        await say(tx, place, "undone");
        throw new Error("undone");
      });
      const sent = [sayAll(store, place, "one"), sayAll(store, place, "two")];
      await Promise.all([expect(undone).rejects.toThrow("undone"), ...sent]);
    }));

  test("has the sends of earlier units of the same transaction", async () => {
    using files = emptyStore();
    await withStore(files.database, async (store) => {
      const place = await conversation(store);
      const positions = (tx: ReadTx, id: number) => tx.readPositions(id);
      const [, , within] = await Promise.all([
        sayAll(store, place, "one"),
        sayAll(store, place, "two"),
        inChat(store, place, positions),
      ]);
      expect(within).toMatchObject({ [place.alice.username]: 2 });
    });
  });

  test("has what another process has written", () =>
    expectFresh(1, (_, place, path) =>
      withStore(path, (other) => sayAll(other, place, "elsewhere")),
    ));

  test("has the title", () =>
    expectFresh(0, (store, place) => inChat(store, place, (tx, id) => tx.setTitle(id, "title"))));

  test("has the end of a membership", () =>
    expectFresh(0, (store, place) =>
      inChat(store, place, (tx, id) => tx.deleteMembers(id, [place.alice.id])),
    ));

  test("has a counter that an edit has incremented", () =>
    expectFresh(2, async (store, place) => {
      await sayAll(store, place, "first");
      await store.write(async (tx) => {
        const { id: senderId } = place.alice;
        const conversationId = (await tx.conversation(place.uuid, senderId))?.id ?? 0;
        const sent = { conversationId, senderId, after: 0, upTo: 1 };
        const [uuid = ""] = await tx.sentIn(sent);
        await tx.editMessage((await tx.message(uuid)) as MessageRecord, "second", [], at);
      });
    }));
});

describe("the batch writer", () => {
  /** A batch writer whose syncs end when the test says so. */
  function slowDisk() {
    const db = new Database(":memory:", { strict: true });
    db.run("CREATE TABLE written (name TEXT)");
    const syncs: PromiseWithResolvers<void>[] = [];
    const announced: Change[] = [];
    let hear = (announcements: readonly Change[]) => void announced.push(...announcements);
    let asked = Promise.withResolvers<void>();
    const connection = new Connection(db);
    const port = portOf(connection);
    const batches = batchWriter({
      db,
      connection,
      tx: {} as Omit<WriteTx, "emit">,
      log: () => {},
      // A slow machine must not divide what a test expects in one transaction.
      batchMs: Number.POSITIVE_INFINITY,
      sync: () => {
        const sync = Promise.withResolvers<void>();
        syncs.push(sync);
        asked.resolve();
        asked = Promise.withResolvers();
        return sync.promise;
      },
      committed: (announcements) => hear(announcements),
    });
    return {
      db,
      batches,
      announced,
      syncs,
      onCommit: (listener: typeof hear) => {
        hear = listener;
      },
      write: (name: string) =>
        batches.write((tx) => {
          port().change`INSERT INTO written VALUES (${name})`;
          tx.emit({ kind: "session_ended", session_id: name });
          return name;
        }),
      written: () =>
        db
          .query<{ name: string }, []>("SELECT name FROM written")
          .all()
          .map((row) => row.name),
      /** The next sync. */
      syncing: async (place: number) => {
        while (!syncs[place]) await asked.promise;
        return syncs[place] as PromiseWithResolvers<void>;
      },
    };
  }

  /** Whether a promise is settled. */
  const settled = async (promise: Promise<unknown> | undefined) => {
    const open = Symbol();
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    return (await Promise.race([promise?.catch(() => {}), Promise.resolve(open)])) !== open;
  };

  test("hands changes over only once they are on disk", async () => {
    const { batches, announced, write, written, syncing } = slowDisk();
    const write1 = write("one");
    const sync = await syncing(0);
    expect(written()).toEqual(["one"]);
    expect(await settled(write1)).toBe(false);
    expect(await settled(batches.settled())).toBe(false);
    expect(announced).toEqual([]);
    sync.resolve();
    expect(await write1).toBe("one");
    await batches.settled();
    expect(announced).toEqual([{ kind: "session_ended", session_id: "one" }]);
  });

  test("commits units that arrive during a sync together with the next one", async () => {
    const { write, written, syncing, syncs } = slowDisk();
    const first = write("one");
    const sync = await syncing(0);
    const rest = ["two", "three", "four"].map(write);
    expect(await settled(first)).toBe(false);
    expect(written()).toEqual(["one"]);
    sync.resolve();
    (await syncing(1)).resolve();
    expect(await Promise.all(rest)).toEqual(["two", "three", "four"]);
    expect(syncs).toHaveLength(2);
  });

  test("syncs nothing for units that write nothing, unless they read what is not on disk", async () => {
    const { batches, write, written, syncing, syncs } = slowDisk();
    expect(await batches.write(written)).toEqual([]);
    expect(syncs).toHaveLength(0);
    const first = write("one");
    const read = batches.write(written);
    const sync = await syncing(0);
    expect(await settled(read)).toBe(false);
    sync.resolve();
    expect(await read).toEqual(["one"]);
    await first;
    expect(syncs).toHaveLength(1);
  });

  test("begins no transaction while it is paused", async () => {
    const { batches, write, written, syncing } = slowDisk();
    const first = write("one");
    const sync = await syncing(0);
    const second = write("two");
    expect(await settled(second)).toBe(false);
    const pause = Promise.withResolvers<void>();
    const paused = batches.pause(() => pause.promise);
    sync.resolve();
    await first;
    expect(await settled(second)).toBe(false);
    expect(written()).toEqual(["one"]);
    pause.resolve();
    await paused;
    (await syncing(1)).resolve();
    expect(await second).toBe("two");
  });

  test("rejects all units after a failed sync", async () => {
    const { batches, announced, write, syncing } = slowDisk();
    const first = write("one");
    const sync = await syncing(0);
    const second = write("two");
    sync.reject(new Error("the disk is gone"));
    const outcomes = await Promise.allSettled([first, second, write("three")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await batches.settled()?.catch((error) => error.message)).toEndWith("the disk is gone");
    expect(announced).toEqual([]);
  });

  test("rejects all units after another file has failed, also those that are being synced", async () => {
    const { batches, announced, write, syncing } = slowDisk();
    const first = write("one");
    const sync = await syncing(0);
    const second = write("two");
    batches.fail(new Error("the disk is gone"));
    sync.resolve();
    const outcomes = await Promise.allSettled([first, second, write("three")]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(await batches.settled()?.catch((error) => error.message)).toEndWith("the disk is gone");
    expect(announced).toEqual([]);
  });

  test("stores nothing of a transaction that SQLite has rolled back by itself", async () => {
    const { db, batches, announced, write, written } = slowDisk();
    const { pages } = db.query("SELECT page_count AS pages FROM pragma_page_count").get() as {
      pages: number;
    };
    db.run(`PRAGMA max_page_count = ${pages + 2}`);
    const fill = db.query("INSERT INTO written VALUES (zeroblob(100000))");
    const outcomes = await Promise.allSettled([
      write("before"),
      batches.write(() => fill.run()),
      write("after"),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
    expect(written()).toEqual([]);
    expect(announced).toEqual([]);
  });

  test("resolves writes although a listener throws", async () => {
    const { write, syncing, onCommit } = slowDisk();
    onCommit(() => {
      throw new Error("nobody could be told");
    });
    const first = write("one");
    (await syncing(0)).resolve();
    const [outcome] = await Promise.allSettled([first]);
    expect(outcome?.status).toBe("fulfilled");
    onCommit(() => {});
    const second = write("two");
    (await syncing(1)).resolve();
    expect(await second).toBe("two");
  });
});

/** Whether this process has a lock on a file. Asks another process: a process does not see its own. */
function isLocked(file: string): boolean {
  const owner = `${process.pid}`;
  const inode = `${statSync(file).ino}`;
  return readFileSync("/proc/locks", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .some((words) => words[4] === owner && words[5]?.split(":").at(-1) === inode);
}

describe("the files", () => {
  const filesIn = (path: string) => readdirSync(path).map((name) => join(path, name));

  test("are readable by their owner only, also those that others could read before", async () => {
    using files = emptyStore();
    chmodSync(files.path, 0o755);
    const modes = () => filesIn(files.path).map((file) => statSync(file).mode & 0o777);
    await withStore(files.database, async (store) => {
      const place = await conversation(store);
      await sayAll(store, place, "needle");
      await searchPatiently(store, { words: ["needle"], viewerId: place.alice.id, limit: 1 });
      expect(modes().length).toBeGreaterThan(4);
      expect(new Set(modes())).toEqual(new Set([0o600]));
    });
    for (const file of filesIn(files.path)) chmodSync(file, 0o644);
    await withStore(files.database, async (store) => {
      await searchPatiently(store, { words: ["needle"], viewerId: 1, limit: 1 });
      const databases = filesIn(files.path).filter((file) => !file.endsWith("-mark"));
      for (const file of databases) expect(statSync(file).mode & 0o777).toBe(0o600);
    });
  });

  test("stay locked, so that a backup during operation does not delete the log", async () => {
    using files = emptyStore();
    const work = async (store: Store) => {
      const place = await conversation(store);
      await sayAll(store, place, "needle");
      await searchPatiently(store, { words: ["needle"], viewerId: place.alice.id, limit: 1 });
      await until(() => statSync(files.log).size === 0, "the database file is synced");
      expect(isLocked(files.database)).toBe(true);
      expect(isLocked(files.index)).toBe(true);
    };
    await withStore(files.database, work, { eraseMs: 0 });
  });

  test("do not contain deleted or replaced text once the log is truncated", async () => {
    using files = emptyStore();
    const holding = (word: string) =>
      filesIn(files.path).filter((file) => readFileSync(file).includes(word));
    const store = openSqliteStore(files.database, { eraseMs: 0 });
    try {
      const place = await conversation(store);
      await sayAll(store, place, "zqdeletedword one", "zqeditedword two", "zqkeptword three");
      const find = (word: string) =>
        searchPatiently(store, { words: [word], viewerId: place.alice.id, limit: 1 });
      const [[deleted], [edited]] = [await find("zqdeletedword"), await find("zqeditedword")];
      for (const word of ["zqdeletedword", "zqeditedword", "zqkeptword"]) {
        expect(holding(word)).not.toEqual([]);
      }
      await store.write(async (tx) => {
        const record = (uuid = "") => tx.message(uuid) as Promise<MessageRecord>;
        await tx.deleteMessages([await record(deleted?.uuid)], at);
        await tx.editMessage(await record(edited?.uuid), "other words", [], at);
      });
      const held = () => holding("zqdeletedword").length + holding("zqeditedword").length;
      await until(() => held() === 0, "the text is gone");
      expect(holding("zqkeptword")).not.toEqual([]);
      expect(await find("zqkeptword")).toHaveLength(1);
    } finally {
      await store.close();
    }
  });
});

test("a database that another process has locked for a moment is opened", async () => {
  using files = emptyStore();
  const script = `
    const { Database } = require("bun:sqlite");
    const db = new Database(${JSON.stringify(files.database)}, { create: true });
    db.run("PRAGMA application_id = 1");
    db.run("BEGIN EXCLUSIVE");
    console.log("locked");
    setTimeout(() => process.exit(), 200);`;
  const other = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  await other.stdout.getReader().read();
  await withStore(files.database, conversation);
  expect(await other.exited).toBe(0);
});

/** Runs work with the thread that indexes and runs checkpoints. `synced` is the file that it syncs. */
async function withIndexer(
  path: string,
  work: (indexer: Indexer) => Promise<void>,
  synced = path,
): Promise<void> {
  const file = openSync(synced, "r");
  const indexer = indexerThread(path, file);
  try {
    await work(indexer);
  } finally {
    await indexer.close();
    closeSync(file);
  }
}

test("the log is emptied once nobody reads an older state, and nobody waits for that", async () => {
  using files = emptyStore();
  await withStore(files.database, conversation);
  using writer = new Database(files.database);
  using reader = new Database(files.database);
  await withIndexer(files.database, async (indexer) => {
    reader.run("BEGIN");
    reader.query("SELECT 1 FROM messages").all();
    writer.run("UPDATE accounts SET display_name = 'Deleted account'");
    expect(await indexer.ask({ kind: "truncate" })).toBe(false);
    reader.run("COMMIT");
    expect(await indexer.ask({ kind: "truncate" })).toBe(true);
    expect(statSync(`${files.database}-wal`).size).toBe(0);
  });
});

test("indexing waits while writers pause, and the pause for indexing that has begun", async () => {
  using files = emptyStore();
  await withStore(files.database, conversation);
  await withIndexer(files.database, async (indexer) => {
    const order: string[] = [];
    const index = (name: string) =>
      indexer.ask({ kind: "index", most: 1 }).then(() => order.push(name));
    const checkpoint = () => indexer.ask({ kind: "checkpoint", fromPages: 0 });
    const earlier = index("earlier");
    let later: Promise<unknown> | undefined;
    await indexer.holdIndexing(async () => {
      later = index("later");
      await checkpoint();
      order.push("the pause begins");
      await checkpoint();
      order.push("the pause ends");
    });
    await Promise.all([earlier, later]);
    expect(order).toEqual(["earlier", "the pause begins", "the pause ends", "later"]);
  });
});

/** Maintenance of a store that nothing but the given parts belong to. */
function maintain(parts: Pick<MaintenanceOptions, "indexer" | "batches" | "eraseMs">) {
  const background = backgroundRunner("restore_mark", "search_indexing", "checkpoint");
  const maintenance = startMaintenance({
    background,
    pruneSearchChanges: async () => {},
    checkPlace: () => {},
    saveMark: () => {},
    version: () => 1,
    ...parts,
  });
  return { background, [Symbol.asyncDispose]: () => maintenance.stop() };
}

test("a sync of the database file that fails stops the store", async () => {
  using files = emptyStore();
  await withStore(files.database, conversation);
  const stopped = Promise.withResolvers<unknown>();
  const batches = { failure: () => null, fail: stopped.resolve } as BatchWriter;
  const stop = async (indexer: Indexer) => {
    await using _ = maintain({ indexer, batches, eraseMs: 0 });
    expect(await stopped.promise).toMatchObject({ code: "EINVAL" });
  };
  // A device that cannot be synced.
  await withIndexer(files.database, stop, "/dev/null");
});

describe("background work", () => {
  test("that fails is counted and reported until it succeeds again, and the store serves", async () => {
    using files = emptyStore();
    await withStore(files.database, async (store) => {
      const place = await conversation(store);
      const reports: [kind: string, error: string | null][] = [];
      store.background.onChange((kind, error) => {
        reports.push([kind, error === null ? null : String(error)]);
      });
      await searchPatiently(store, { words: ["needle"], viewerId: place.alice.id, limit: 1 });
      expect(store.background.failing()).toEqual([]);
      const index = new Database(files.index);
      index.run("PRAGMA busy_timeout = 5000");
      index.run("ALTER TABLE progress RENAME TO progress_aside");
      await sayAll(store, place, "needle");
      const failures = () => store.background.failures().get("search_indexing") ?? 0;
      await until(() => failures() >= 2, "indexing fails");
      expect(store.background.failing()).toEqual(["search_indexing"]);
      expect(reports).toEqual([["search_indexing", expect.stringContaining("progress")]]);
      index.run("ALTER TABLE progress_aside RENAME TO progress");
      index.close();
      await until(() => store.background.failing().length === 0, "indexing succeeds again");
      expect(reports.at(-1)).toEqual(["search_indexing", null]);
      const found = await searchPatiently(store, {
        words: ["needle"],
        viewerId: place.alice.id,
        limit: 1,
      });
      expect(found).toHaveLength(1);
      expect([...store.background.failures()].filter(([, count]) => count > 0)).toHaveLength(1);
    });
  });

  test("that fails is tried again, also if nothing is written meanwhile", async () => {
    let isDiskFull = true;
    const indexer = {
      ask: async ({ kind }: Task) => {
        if (kind === "index") return { left: 0, lastChange: 0 };
        if (isDiskFull) throw new Error("the disk is full");
        return { pages: 1, left: 0 };
      },
    } as Indexer;
    const batches = { failure: () => null } as BatchWriter;
    await using maintained = maintain({ indexer, batches, eraseMs: Number.POSITIVE_INFINITY });
    const { background } = maintained;
    await until(() => (background.failures().get("checkpoint") ?? 0) > 1, "it is tried again");
    expect(background.failing()).toEqual(["checkpoint"]);
    isDiskFull = false;
    await until(() => background.failing().length === 0, "it succeeds");
  });

  const EDITS = 1500;
  /** Edits a message so often that edits are pruned, the last time to the given text. */
  async function editOften(store: Store, { alice }: { alice: AccountRecord }, text: string) {
    const [hit] = await searchPatiently(store, { words: ["needle"], viewerId: alice.id, limit: 1 });
    await store.write(async (tx) => {
      const record = (await tx.message(hit?.uuid ?? "")) as MessageRecord;
      for (let n = 1; n < EDITS; n++) await tx.editMessage(record, `edit ${n}`, [], at);
      await tx.editMessage(record, text, [], at);
    });
  }
  /** The ids of `search_changes`. */
  const unpruned = (path: string) => {
    using db = new Database(path, { readonly: true });
    const rows = db.query<{ id: number }, []>("SELECT id FROM search_changes").all();
    return rows.map(({ id }) => id);
  };

  test("prunes edits that are indexed, and keeps the last", async () => {
    using files = emptyStore();
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      await sayAll(store, made, "needle");
      await editOften(store, made, "thread needle");
      // Fewer than a thousand are left if a slow machine indexes them in two rounds.
      await until(() => unpruned(files.database).length < 1000, "edits are pruned");
      expect(unpruned(files.database).at(-1)).toBe(EDITS);
      return made;
    });
    await withStore(files.database, async (store) => {
      const find = (word: string) =>
        searchPatiently(store, { words: [word], viewerId: place.alice.id, limit: 10 });
      expect(await find("thread")).toHaveLength(1);
      await editOften(store, place, "other");
      expect(await find("thread")).toHaveLength(0);
      expect(await find("other")).toHaveLength(1);
    });
  });

  test("rebuilds an index that lacks pruned edits", async () => {
    using files = emptyStore();
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      await sayAll(store, made, "needle");
      await searchPatiently(store, { words: ["needle"], viewerId: made.alice.id, limit: 1 });
      return made;
    });
    const older = `${files.index}-older`;
    copyFileSync(files.index, older);
    await withStore(files.database, async (store) => {
      await editOften(store, place, "thread");
      await until(() => unpruned(files.database).length < 1000, "edits are pruned");
    });
    copyFileSync(older, files.index);
    await withStore(files.database, async (store) => {
      const find = (word: string) =>
        searchPatiently(store, { words: [word], viewerId: place.alice.id, limit: 10 });
      expect(await find("needle")).toHaveLength(0);
      expect(await find("thread")).toHaveLength(1);
    });
  });
});

describe("a search", () => {
  test("that takes too long fails, and nothing else waits for it", async () => {
    using files = emptyStore();
    await withStore(files.database, async (store) => {
      const place = await conversation(store);
      const query = { words: ["needle"], viewerId: place.alice.id, limit: 10 };
      const find = () => store.search(query);
      await sayAll(store, place, "needle");
      expect(await searchPatiently(store, query)).toHaveLength(1);
      // Another connection locks the index, so that indexing waits.
      const holder = new Database(files.index);
      holder.run("PRAGMA busy_timeout = 60000");
      holder.run("BEGIN IMMEDIATE");
      const searches = Promise.allSettled([find(), find(), find()]);
      await sayAll(store, place, "needle again");
      for (const outcome of await searches) {
        expect(outcome).toMatchObject({ status: "rejected", reason: { code: "unavailable" } });
      }
      holder.run("ROLLBACK");
      holder.close();
      expect(await searchPatiently(store, query)).toHaveLength(2);
    });
  });
});

test("a search right after an import answers with what is indexed by then", async () => {
  using files = emptyStore();
  await withStore(files.database, async (store) => {
    const place = await conversation(store);
    const IMPORTED = 1500;
    const texts = Array.from({ length: IMPORTED }, (_, n) => {
      const words = Array.from({ length: 4000 }, (_, k) => (n * 4000 + k).toString(36));
      return `needle ${words.join(" ")}`;
    });
    await sayAll(store, place, ...texts);
    const query = { words: ["needle"], viewerId: place.alice.id, limit: IMPORTED };
    expect(await searchPatiently(store, query)).toSatisfy(
      ({ length }) => length > 0 && length < IMPORTED,
    );
  });
});

test("a search finds the latest messages, however long indexing takes", async () => {
  using files = emptyStore();
  const options = { indexWaitMs: 0 };
  const find = async (store: Store) => {
    const place = await conversation(store);
    const texts = Array.from({ length: 400 }, (_, n) => `needle ${n}`);
    await sayAll(store, place, ...texts);
    const query = { words: ["needle"], viewerId: place.alice.id, limit: texts.length };
    expect(await searchPatiently(store, query)).toHaveLength(texts.length);
  };
  await withStore(files.database, find, options);
});

describe("a restore from a backup", () => {
  const historyOf = (path: string) =>
    withStore(path, (store) => store.read((tx) => tx.historyId()));

  /** A store that has changed since its backup. */
  async function backedUp(files: ReturnType<typeof folder>) {
    const backup = `${files.path}-backup`;
    const place = await withStore(files.database, async (store) => {
      const made = await conversation(store);
      await sayAll(store, made, "in the backup");
      const db = new Database(files.database);
      db.run(`VACUUM INTO '${backup}.db'`);
      db.close();
      return made;
    });
    cpSync(files.path, backup, { recursive: true });
    await withStore(files.database, (store) => sayAll(store, place, "lost"));
    const history = await historyOf(files.database);
    return {
      backup,
      history,
      [Symbol.dispose]: () => {
        rmSync(backup, { recursive: true });
        rmSync(`${backup}.db`);
      },
    };
  }

  test.each([
    ["the documented steps", "rm {data}/parley*.db* && cp {backup}.db {data}/parley.db"],
    ["a copy over the database alone", "cp {backup}.db {data}/parley.db"],
    ["another folder in its place", "rm -r {data} && cp -a {backup} {data}"],
    [
      "files that are moved into its place",
      "mv {data} {data}-old && cp -a {backup} {data}; rm -r {data}-old",
    ],
  ])("by %s begins another history", async (_, steps) => {
    using files = emptyStore();
    using before = await backedUp(files);
    const command = steps.replaceAll("{data}", files.path).replaceAll("{backup}", before.backup);
    expect(Bun.spawnSync(["sh", "-c", command]).exitCode).toBe(0);
    const after = await historyOf(files.database);
    expect(after).not.toBe(before.history);
    expect(await historyOf(files.database)).toBe(after);
  });

  test("is not mistaken for a crash", async () => {
    using files = emptyStore();
    const main = join(import.meta.dir, "../src/store/sqlite/index.ts");
    const script = `
      const { openSqliteStore } = await import(${JSON.stringify(main)});
      const store = openSqliteStore(${JSON.stringify(files.database)});
      console.log(await store.read((tx) => tx.historyId()));
      process.kill(process.pid, "SIGKILL");
    `;
    const crash = () => Bun.spawnSync([process.execPath, "-e", script]).stdout.toString().trim();
    const first = crash();
    expect(first).not.toBe("");
    expect(crash()).toBe(first);
    expect(await historyOf(files.database)).toBe(first);
  });
});
