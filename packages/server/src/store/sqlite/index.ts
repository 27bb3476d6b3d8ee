import { closeSync, fstatSync, openSync, statSync } from "node:fs";
import type { Change } from "../../changes/change.ts";
import { backgroundRunner, watchWrites } from "../background-work.ts";
import { LOG_LIMITS, pruneChanges, pruneRegularly } from "../changes.ts";
import { changeLog, changeWriter } from "../hot/changes-sqlite.ts";
import { hotConversationReads, hotConversationWrites } from "../hot/conversations-sqlite.ts";
import { hotMessageWrites, importedMessageWrites } from "../hot/messages-sqlite.ts";
import { hotTurnWrites } from "../hot/turns-sqlite.ts";
import * as shared from "../methods.ts";
import type { SearchHit, SearchQuery, Worked } from "../search.ts";
import { searchQueue } from "../search-queue.ts";
import type { Store, StoreOptions } from "../store.ts";
import { type Background, indexerThread, startSearcher } from "./background.ts";
import { batchWriter } from "./batch-writer.ts";
import { keepLog, migrate, openDatabase } from "./connection.ts";
import { followHistory } from "./history.ts";
import { startLogSync } from "./log-sync.ts";
import {
  INDEXED_AT_ONCE,
  isPruningDue,
  pruneSearchChanges,
  startMaintenance,
} from "./maintenance.ts";
import { NEWEST_SCHEMA } from "./migrations.ts";
import { bind, Connection, portOf } from "./sql.ts";

/** How long deleted or replaced text stays in the write-ahead log at most. */
const ERASE_MS = 10 * 60_000;

export interface SqliteStoreOptions extends StoreOptions {
  readonly eraseMs?: number;
  /** How long a search waits for an index that is far behind. Default: two seconds. */
  readonly indexWaitMs?: number;
}

/** The embedded store: one SQLite file, owned by one process. */
export function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  const db = openDatabase(path);
  const from = migrate(db);
  if (from > 0 && from < NEWEST_SCHEMA) options.migrated?.(from, NEWEST_SCHEMA);
  const saveMark = followHistory(db, path);
  // Readers have a connection of their own, which sees committed transactions only.
  const readerDb = openDatabase(path);
  const writer = new Connection(db);
  const port = portOf(writer);
  const log = startLogSync(path);
  // Closed after the database only: closing it releases SQLite's locks, which belong to the process.
  const file = openSync(path, "r");
  const indexer = indexerThread(path, file);
  const searching = startSearching(path, indexer, options.indexWaitMs);
  let listener: (changes: readonly Change[]) => void = () => {};

  const { ino } = fstatSync(file);
  /** Throws if the database has no name any more: what is written to it is gone with this process. */
  const checkPlace = () => {
    if (statSync(path, { throwIfNoEntry: false })?.ino !== ino)
      throw new Error("the database file was moved or deleted");
  };

  const background = backgroundRunner(
    "writes",
    "search_indexing",
    "checkpoint",
    "pruning",
    "restore_mark",
  );
  const batches = batchWriter({
    db,
    connection: writer,
    tx: bind(writes, port),
    log: changeWriter(db, options.node ?? Bun.randomUUIDv7()),
    sync: async () => {
      await log.sync();
      checkPlace();
    },
    committed: (changes) => listener(changes),
    finished: watchWrites(background),
  });
  const reader = portOf(new Connection(readerDb, { readOnly: true }));
  const readTx = bind(reads, reader);
  const dataVersion = readerDb.query("PRAGMA data_version");
  const maintenance = startMaintenance({
    background,
    batches,
    indexer,
    pruneSearchChanges: async (lastIndexed) => {
      if (!isPruningDue(reader(), lastIndexed)) return;
      await batches.note(() => pruneSearchChanges(port(), lastIndexed));
    },
    saveMark,
    version: () => dataVersion.values()[0]?.[0],
    checkPlace,
    eraseMs: options.eraseMs ?? ERASE_MS,
  });

  const closeDatabase = () => {
    readerDb.close();
    db.close();
  };
  // At exit, the runtime empties the log of databases that are still open, also after a failed sync.
  process.once("exit", closeDatabase);

  const limits = { ...LOG_LIMITS, ...options.logLimits };
  const pruning = pruneRegularly(
    background,
    limits.pruneEveryMs,
    () => batches.write(() => pruneChanges(port(), limits)) as Promise<boolean>,
  );

  return {
    async read(unit) {
      const result = await unit(readTx);
      await batches.settled();
      return result;
    },
    write: (unit) => batches.write(unit) as Promise<never>,
    note: (unit) => batches.note(unit) as Promise<never>,
    changes: changeLog(readerDb, batches.settled),
    search: searching.search,
    onCommit: (handler) => {
      listener = handler;
    },
    background,
    ready: async () => {
      readerDb.query("SELECT 1").get();
      await batches.settled();
    },
    close: async () => {
      await pruning.stop();
      await maintenance.stop();
      await batches.close();
      await searching.close();
      await indexer.close();
      saveMark();
      process.off("exit", closeDatabase);
      // After a failed sync, only the log is known to have everything that was acknowledged.
      keepLog(db, batches.failure() !== null);
      closeDatabase();
      closeSync(file);
      log.close();
    },
  };
}

const reads = { ...shared.reads, ...hotConversationReads };

const writes = {
  ...reads,
  ...shared.writes,
  ...hotConversationWrites,
  ...hotMessageWrites,
  ...importedMessageWrites,
  ...hotTurnWrites,
};

/** How long a search waits for an index that is far behind, as after an import of a million messages. */
const INDEX_WAIT_MS = 2000;
/** So few messages are indexed before any search, however slow the disk is. */
const FEW_LEFT = 500;

/**
 * The index catches up before each search, so that it finds all messages acknowledged before. If it is
 * so far behind that this takes too long, the search finds what is indexed.
 */
function startSearching(path: string, indexer: Background<"index">, waitMs = INDEX_WAIT_MS) {
  const searchers: Background<"search">[] = [];

  async function run(query: SearchQuery, slot: number, worked: Worked): Promise<SearchHit[]> {
    const waitedUntil = performance.now() + waitMs;
    let left: number;
    do {
      ({ left } = await indexer.ask({ kind: "index", most: INDEXED_AT_ONCE }));
    } while (left > 0 && (left <= FEW_LEFT || performance.now() < waitedUntil));
    searchers[slot] ??= startSearcher(path);
    const startedAt = performance.now();
    try {
      const { hits, cpuMs } = await searchers[slot].ask({ kind: "search", query });
      worked(cpuMs);
      return hits;
    } catch (error) {
      // What a search that fails has cost is not known otherwise.
      worked(performance.now() - startedAt);
      throw error;
    }
  }

  return {
    search: searchQueue(run),
    close: () => Promise.all(searchers.map((searcher) => searcher.close())),
  };
}
