import type { BackgroundRunner } from "../background-work.ts";
import { raw, sql } from "../sql.ts";
import { type Indexer, TaskError } from "./background.ts";
import type { BatchWriter } from "./batch-writer.ts";
import type { Port } from "./sql.ts";

const INTERVAL_MS = 1000;
/** Pages of the log that a checkpoint moves at least: 16 MiB. */
const PAGES_PER_CHECKPOINT = 4096;
/**
 * Pages after which the log starts over, for which writers wait: 128 MiB. In a log that only grows, each
 * sync would also store the new size of the file, and each read of a page would search more of the log.
 */
const PAGES_PER_LOG = 32_768;
/**
 * Codes of SQLite, and of the system, such as EIO. Other errors are harmless: SQLITE_BUSY and
 * SQLITE_FULL, for instance, leave the log as it is.
 */
const DISK_ERROR = /^(SQLITE_IOERR|E[A-Z]+$)/;
/** How many messages are indexed for search at a time. */
export const INDEXED_AT_ONCE = 200;
/** How long a round indexes. The next task of the round maintains the log, whatever is left to index. */
const INDEXING_MS = 1000;

export interface MaintenanceOptions {
  readonly background: BackgroundRunner;
  readonly batches: BatchWriter;
  readonly indexer: Indexer;
  /** Deletes rows of `search_changes` up to the last one that is indexed. */
  pruneSearchChanges(lastIndexed: number): Promise<unknown>;
  saveMark(): void;
  /** Differs after every commit, also of another process. */
  version(): unknown;
  /** Throws if the database is not the file at its path any more. */
  checkPlace(): void;
  /** How long deleted or replaced text stays in the log at most. */
  readonly eraseMs: number;
}

/**
 * Once a second, after commits: saves the restore mark, indexes new messages for search, and keeps the
 * write-ahead log short and free of deleted text.
 */
export function startMaintenance(options: MaintenanceOptions) {
  const { background, batches, indexer, pruneSearchChanges, saveMark, version, checkPlace } =
    options;
  let round: Promise<void> | null = null;
  /** The last row of `search_changes` that is indexed: one for each edit and deletion. */
  let lastIndexed = 0;
  /** `lastIndexed` when the log was last truncated. At first none: a killed process leaves a log. */
  let erasedUpTo = -1;
  let erasedAt = performance.now();
  /** The version of the data that is indexed and saved completely. */
  let seen: unknown = null;
  let isIndexed = false;
  const timer = setInterval(() => {
    round ??= runRound().finally(() => {
      round = null;
    });
  }, INTERVAL_MS);

  /** A task that fails does not keep the others from running. All run again until they have succeeded. */
  async function runRound(): Promise<void> {
    let current: unknown;
    await background.run("restore_mark", () => {
      current = version();
      if (current !== seen) saveMark();
    });
    const isNew = current !== seen;
    if (isNew) await background.run("search_indexing", indexMessages);
    await background.run("checkpoint", () => maintainLog(isNew));
    if (isIndexed && background.failing().length === 0) seen = current;
  }

  async function indexMessages(): Promise<void> {
    isIndexed = false;
    const endsAt = performance.now() + INDEXING_MS;
    while (performance.now() < endsAt) {
      const { left, lastChange } = await indexer.ask({ kind: "index", most: INDEXED_AT_ONCE });
      lastIndexed = lastChange;
      isIndexed = left === 0;
      if (isIndexed) break;
    }
    await pruneSearchChanges(lastIndexed);
  }

  async function maintainLog(isNew: boolean): Promise<void> {
    try {
      checkPlace();
    } catch (error) {
      batches.fail(error);
    }
    const failure = batches.failure();
    // The store has stopped. What the log or the database file has on disk is unknown.
    if (failure) throw failure.error;
    const hasDeletedText = lastIndexed !== erasedUpTo;
    const isDue = performance.now() - erasedAt >= options.eraseMs;
    if (hasDeletedText && isDue) await eraseLog();
    if (!isNew) return;
    const found = await checkpoint(PAGES_PER_CHECKPOINT);
    // The log starts over only after a checkpoint of all of it, for which writers have to pause.
    if (found.pages >= PAGES_PER_LOG) await pauseWriters(() => checkpoint());
  }

  /**
   * Runs a checkpoint while writers pause. To keep the pause short, it does not begin while the thread
   * is indexing, and most of the log is moved and synced before.
   */
  function pauseWriters<Result>(last: () => Promise<Result>): Promise<Result | undefined> {
    return indexer.holdIndexing(async () => {
      // The second pass has only what was written during the first, and leaves less for the pause.
      for (let pass = 1; pass <= 2; pass++) {
        const { pages, left } = await checkpoint();
        // Somebody reads an older state, such as a backup: a pause would not help.
        if (left > pages / 2) return undefined;
        await stopOnDiskError(indexer.ask({ kind: "sync" }));
      }
      return batches.pause(last);
    });
  }

  /** Removes deleted and replaced text from the log. It is tried again later while somebody reads it. */
  async function eraseLog(): Promise<void> {
    const upTo = lastIndexed;
    const isIndexTruncated = await indexer.ask({ kind: "truncate_index" });
    const isTruncated = await pauseWriters(() =>
      stopOnDiskError(indexer.ask({ kind: "truncate" })),
    );
    if (!isIndexTruncated || !isTruncated) return;
    erasedUpTo = upTo;
    erasedAt = performance.now();
  }

  /** Moves the log into the database file, while writes go on. */
  function checkpoint(fromPages = 0) {
    return stopOnDiskError(indexer.ask({ kind: "checkpoint", fromPages }));
  }

  /**
   * Stops the store if the database file could not be written or synced. The system may have dropped
   * the pages, and report the next sync as a success. The log still has them, unless it starts over.
   */
  async function stopOnDiskError<Result>(task: Promise<Result>): Promise<Result> {
    try {
      return await task;
    } catch (error) {
      if (isDiskError(error)) batches.fail(error);
      throw error;
    }
  }

  return {
    stop: async () => {
      clearInterval(timer);
      await round;
    },
  };
}

const isDiskError = (error: unknown) =>
  error instanceof TaskError && DISK_ERROR.test(error.code ?? "");

/** Number of indexed rows from which on pruning is worth a write. */
const PRUNED_FROM = 1000;
/** Rows that one call deletes at most, so that it does not hold up other writes. */
const PRUNED_AT_ONCE = 10_000;

const OLDEST = sql`SELECT min(id) AS id FROM search_changes`;

/** Whether enough rows of `search_changes` are indexed that they are worth pruning. */
export const isPruningDue = (db: Port, lastIndexed: number): boolean =>
  lastIndexed - (db.get<{ id: number | null }>`${OLDEST}`?.id ?? lastIndexed) >= PRUNED_FROM;

/**
 * Deletes rows of `search_changes` before the last one that is indexed. That one stays, so that ids
 * are not used again and the index can tell whether it has them all.
 */
export const pruneSearchChanges = (db: Port, lastIndexed: number): void =>
  void db.change`
    DELETE FROM search_changes
    WHERE id < min(${lastIndexed}, (${OLDEST}) + ${raw(PRUNED_AT_ONCE)})`;
