import { closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { Change } from "../../changes/change.ts";
import type { SearchHit, SearchQuery } from "../search.ts";
import { type BackgroundRunner, backgroundRunner } from "../shared/background-work.ts";
import { LOG_LIMITS, type LogLimits, pruneRegularly } from "../shared/change-log.ts";
import { SEARCH_DEADLINE_MS, searchQueue } from "../shared/search-queue.ts";
import type { ReadTx, Store, WriteTx } from "../store.ts";
import { accountReads, accountWrites, indexAccounts } from "./accounts.ts";
import { agentReads, agentWrites } from "./agents.ts";
import { type Background, startIndexer, startSearcher } from "./background.ts";
import { changeLog, changePruner, changeWriter, subscriptionWrites } from "./changes.ts";
import { componentWrites } from "./components.ts";
import { type Connection, connection, migrate, openDatabase } from "./connection.ts";
import { conversationReads, conversationWrites } from "./conversations.ts";
import { groupChangeReads, groupChangeWrites } from "./group-changes.ts";
import { type GroupWriter, groupWriter } from "./group-commit.ts";
import { hiddenMessageReads, hiddenMessageWrites } from "./hidden-messages.ts";
import { followHistory, historyReads, historyWrites } from "./history.ts";
import { identityReads, identityWrites } from "./identities.ts";
import { messageReads, messageWrites } from "./messages.ts";
import { reactionReads, reactionWrites } from "./reactions.ts";
import { searchChangePruning } from "./search-changes.ts";
import { sessionReads, sessionWrites } from "./sessions.ts";
import { turnReads, turnWrites } from "./turns.ts";
import { updateReads } from "./updates.ts";
import { usageReads } from "./usage.ts";

const MAINTENANCE_MS = 1000;
/** After this many units of work what the log holds is moved into the database. */
const UNITS_PER_CHECKPOINT = 8000;
/** After this many the log is made to begin anew, which holds up writers; it then has some 300 MB. */
const UNITS_PER_LOG = 100_000;
/** How long text that was deleted or replaced stays in the log at the most. */
const ERASE_MS = 10 * 60_000;
/** How many messages are indexed for search at a time, and how many times a second at most. */
const INDEXED_AT_ONCE = 2000;
const INDEXED_PER_SECOND = 10 * INDEXED_AT_ONCE;

export interface SqliteStoreOptions {
  /** The id that the change log has for this process. Default: a random one. */
  readonly node?: string;
  readonly logLimits?: Partial<LogLimits>;
  readonly eraseMs?: number;
}

/** The embedded store: one SQLite file, owned by one process. */
export function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  const db = openDatabase(path);
  migrate(db);
  indexAccounts(db);
  const saveMark = followHistory(db, path);
  // Readers have a connection of their own, which never sees a transaction half done.
  const readerDb = openDatabase(path);
  const writer = connection(db);
  const log = openLog(path);
  const indexer = startIndexer(path);
  const searching = startSearching(path, indexer);
  let listener: (changes: readonly Change[]) => void = () => {};

  const group = groupWriter({
    db,
    connection: writer,
    tx: { ...reads(writer), ...writes(writer) },
    log: changeWriter(db, options.node ?? Bun.randomUUIDv7()),
    sync: log.sync,
    committed: (changes) => listener(changes),
  });
  const reader = connection(readerDb);
  const readTx = reads(reader);
  const background = backgroundRunner("search_indexing", "checkpoint", "pruning", "restore_mark");
  const searchChanges = searchChangePruning(reader, writer);
  const maintenance = maintain({
    background,
    group,
    prune: async (indexed) => {
      if (searchChanges.isDue(indexed)) await group.note(() => searchChanges.prune(indexed));
    },
    indexer,
    saveMark,
    eraseMs: options.eraseMs ?? ERASE_MS,
  });

  const limits = { ...LOG_LIMITS, ...options.logLimits };
  const prune = changePruner(writer, limits);
  const pruning = pruneRegularly(
    background,
    limits.pruneEveryMs,
    () => group.write(prune) as Promise<boolean>,
  );

  return {
    async read(unit) {
      const result = await unit(readTx);
      await group.settled();
      return result;
    },
    write: (unit) => group.write(unit) as Promise<never>,
    note: (unit) => group.note(unit) as Promise<never>,
    changes: changeLog(readerDb, group.settled),
    search: searching.search,
    onCommit: (handler) => {
      listener = handler;
    },
    background,
    ready: async () => {
      readerDb.query("SELECT 1").get();
      await group.settled();
    },
    close: async () => {
      await pruning.stop();
      await maintenance.stop();
      await group.close();
      await searching.close();
      await indexer.close();
      saveMark();
      readerDb.close();
      db.close();
      log.close();
    },
  };
}

const reads = (db: Connection): ReadTx => ({
  ...accountReads(db),
  ...identityReads(db),
  ...sessionReads(db),
  ...conversationReads(db),
  ...groupChangeReads(db),
  ...messageReads(db),
  ...updateReads(db),
  ...hiddenMessageReads(db),
  ...reactionReads(db),
  ...agentReads(db),
  ...usageReads(db),
  ...turnReads(db),
  ...historyReads(db),
});

const writes = (db: Connection): Omit<WriteTx, "emit" | "signal" | keyof ReadTx> => ({
  ...accountWrites(db),
  ...identityWrites(db),
  ...sessionWrites(db),
  ...conversationWrites(db),
  ...groupChangeWrites(db),
  ...messageWrites(db),
  ...hiddenMessageWrites(db),
  ...componentWrites(db),
  ...reactionWrites(db),
  ...agentWrites(db),
  ...turnWrites(db),
  ...historyWrites(db),
  ...subscriptionWrites(db),
});

/** The write-ahead log, which holds every commit until it is synced. */
function openLog(path: string) {
  const descriptor = openSync(`${path}-wal`, "r");
  // A crash of the machine must not forget the new file's very name.
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
  return {
    sync: () =>
      new Promise<void>((resolve, reject) =>
        fdatasync(descriptor, (error) => (error ? reject(error) : resolve())),
      ),
    close: () => closeSync(descriptor),
  };
}

/** Searches find everything that was acknowledged before: the index catches up first. */
function startSearching(path: string, indexer: Background<"index">) {
  const searchers: Background<"search">[] = [];

  async function run(query: SearchQuery, slot: number): Promise<SearchHit[]> {
    const deadline = performance.now() + SEARCH_DEADLINE_MS;
    while ((await indexer.ask({ kind: "index", most: INDEXED_AT_ONCE })).more) {
      // Answered already.
      if (performance.now() > deadline) return [];
    }
    searchers[slot] ??= startSearcher(path);
    return searchers[slot].ask({ kind: "search", query });
  }

  return {
    search: searchQueue(run),
    close: () => Promise.all(searchers.map((searcher) => searcher.close())),
  };
}

interface Maintenance {
  background: BackgroundRunner;
  /** Deletes rows of `search_changes` up to the last one that is indexed. */
  prune(lastIndexed: number): Promise<unknown>;
  group: GroupWriter;
  indexer: Background<"index" | "checkpoint">;
  saveMark(): void;
  eraseMs: number;
}

/**
 * Once a second: saves the mark, indexes new messages for search, keeps the log short, and empties it
 * after text was deleted.
 */
function maintain({ background, group, indexer, saveMark, prune, eraseMs }: Maintenance) {
  // What a process that was killed has left is erased too.
  let erased = -1;
  let erasedAt = performance.now();
  let moved = 0;
  let begun = 0;
  let round: Promise<unknown> = Promise.resolve();
  let busy = false;
  const checkpoint = () => indexer.ask({ kind: "checkpoint" });
  /** The last edit or deletion that the search index has. */
  let lastIndexed = 0;
  const index = async () => {
    for (let indexed = 0; indexed < INDEXED_PER_SECOND; indexed += INDEXED_AT_ONCE) {
      const { more, lastChange } = await indexer.ask({ kind: "index", most: INDEXED_AT_ONCE });
      lastIndexed = lastChange;
      if (!more) break;
    }
    await prune(lastIndexed);
  };
  const keepLogShort = async () => {
    if (lastIndexed !== erased && performance.now() - erasedAt >= eraseMs) {
      const changes = lastIndexed;
      await checkpoint();
      await group.pause(() => indexer.ask({ kind: "checkpoint", truncate: true }));
      erased = changes;
      erasedAt = performance.now();
    }
    if (group.written() - moved < UNITS_PER_CHECKPOINT) return;
    moved = group.written();
    await checkpoint();
    if (moved - begun < UNITS_PER_LOG) return;
    begun = moved;
    // What was written during the first leaves little for the second, which then covers it all:
    // only so does the log begin anew instead of growing for as long as somebody writes.
    await group.pause(checkpoint);
  };
  // One that fails does not keep the others from running.
  const once = async () => {
    await background.run("restore_mark", saveMark);
    await background.run("search_indexing", index);
    await background.run("checkpoint", keepLogShort);
  };
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    round = once().finally(() => {
      busy = false;
    });
  }, MAINTENANCE_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await round;
    },
  };
}
