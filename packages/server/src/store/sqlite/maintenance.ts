import type { BackgroundRunner } from "../background-work.ts";
import { type Indexer, TaskError } from "./background.ts";
import type { BatchWriter } from "./batch-writer.ts";

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
export class Maintenance {
  readonly #options: MaintenanceOptions;
  readonly #timer: NodeJS.Timeout;
  #round: Promise<void> | null = null;
  /** The last row of `search_changes` that is indexed: one for each edit and deletion. */
  #lastIndexed = 0;
  /** `#lastIndexed` when the log was last truncated. At first none: a killed process leaves a log. */
  #erasedUpTo = -1;
  #erasedAt = performance.now();
  /** The version of the data that is indexed and saved completely. */
  #seen: unknown = null;
  #isIndexed = false;

  constructor(options: MaintenanceOptions) {
    this.#options = options;
    this.#timer = setInterval(() => {
      this.#round ??= this.#runRound().finally(() => {
        this.#round = null;
      });
    }, INTERVAL_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#round;
  }

  /** A task that fails does not keep the others from running. All run again until they have succeeded. */
  async #runRound(): Promise<void> {
    const { background, saveMark, version } = this.#options;
    let seen: unknown;
    await background.run("restore_mark", () => {
      seen = version();
      if (seen !== this.#seen) saveMark();
    });
    const isNew = seen !== this.#seen;
    if (isNew) await background.run("search_indexing", () => this.#indexMessages());
    await background.run("checkpoint", () => this.#maintainLog(isNew));
    if (this.#isIndexed && background.failing().length === 0) this.#seen = seen;
  }

  async #indexMessages(): Promise<void> {
    const { indexer, pruneSearchChanges } = this.#options;
    this.#isIndexed = false;
    const endsAt = performance.now() + INDEXING_MS;
    while (performance.now() < endsAt) {
      const { left, lastChange } = await indexer.ask({ kind: "index", most: INDEXED_AT_ONCE });
      this.#lastIndexed = lastChange;
      this.#isIndexed = left === 0;
      if (this.#isIndexed) break;
    }
    await pruneSearchChanges(this.#lastIndexed);
  }

  async #maintainLog(isNew: boolean): Promise<void> {
    const { batches, checkPlace } = this.#options;
    try {
      checkPlace();
    } catch (error) {
      batches.fail(error);
    }
    const failure = batches.failure();
    // The store has stopped. What the log or the database file has on disk is unknown.
    if (failure) throw failure.error;
    const hasDeletedText = this.#lastIndexed !== this.#erasedUpTo;
    const isDue = performance.now() - this.#erasedAt >= this.#options.eraseMs;
    if (hasDeletedText && isDue) await this.#truncateLog();
    if (!isNew) return;
    const found = await this.#checkpoint(PAGES_PER_CHECKPOINT);
    // The log starts over only after a checkpoint of all of it, for which writers have to pause.
    if (found.pages >= PAGES_PER_LOG) await this.#pauseWriters(() => this.#checkpoint());
  }

  /**
   * Runs a checkpoint while writers pause. To keep the pause short, it does not begin while the thread
   * is indexing, and most of the log is moved and synced before.
   */
  #pauseWriters<Result>(lastCheckpoint: () => Promise<Result>): Promise<Result | undefined> {
    const { batches, indexer } = this.#options;
    return indexer.holdIndexing(async () => {
      // The second pass has only what was written during the first, and leaves less for the pause.
      for (let pass = 1; pass <= 2; pass++) {
        const { pages, left } = await this.#checkpoint();
        // Somebody reads an older state, such as a backup: a pause would not help.
        if (left > pages / 2) return undefined;
        await this.#stopOnDiskError(indexer.ask({ kind: "sync" }));
      }
      return batches.pause(lastCheckpoint);
    });
  }

  /** Removes deleted and replaced text from the log. It is tried again later while somebody reads it. */
  async #truncateLog(): Promise<void> {
    const { indexer } = this.#options;
    const erasedUpTo = this.#lastIndexed;
    const isIndexTruncated = await indexer.ask({ kind: "truncate_index" });
    const isTruncated = await this.#pauseWriters(() =>
      this.#stopOnDiskError(indexer.ask({ kind: "truncate" })),
    );
    if (!isIndexTruncated || !isTruncated) return;
    this.#erasedUpTo = erasedUpTo;
    this.#erasedAt = performance.now();
  }

  /** Moves the log into the database file, while writes go on. */
  #checkpoint(fromPages = 0) {
    return this.#stopOnDiskError(this.#options.indexer.ask({ kind: "checkpoint", fromPages }));
  }

  /**
   * Stops the store if the database file could not be written or synced. The system may have dropped
   * the pages, and report the next sync as a success. The log still has them, unless it starts over.
   */
  async #stopOnDiskError<Result>(task: Promise<Result>): Promise<Result> {
    try {
      return await task;
    } catch (error) {
      if (isDiskError(error)) this.#options.batches.fail(error);
      throw error;
    }
  }
}

const isDiskError = (error: unknown) =>
  error instanceof TaskError && DISK_ERROR.test(error.code ?? "");
