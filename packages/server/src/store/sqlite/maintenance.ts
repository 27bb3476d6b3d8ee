import type { BackgroundRunner } from "../shared/background-work.ts";
import type { Indexer } from "./background.ts";
import type { GroupWriter } from "./group-commit.ts";

const INTERVAL_MS = 1000;
/** Units of work between two checkpoints. */
const UNITS_PER_CHECKPOINT = 8000;
/** Units of work after which the log starts over, for which writers wait. It has some 300 MB then. */
const UNITS_PER_LOG = 100_000;
/** How many messages are indexed for search at a time. */
export const INDEXED_AT_ONCE = 2000;
const INDEXED_PER_ROUND = 10 * INDEXED_AT_ONCE;

export interface MaintenanceOptions {
  readonly background: BackgroundRunner;
  readonly group: GroupWriter;
  readonly indexer: Indexer;
  /** Deletes rows of `search_changes` up to the last one that is indexed. */
  pruneSearchChanges(lastIndexed: number): Promise<unknown>;
  saveMark(): void;
  /** How long deleted or replaced text stays in the log at most. */
  readonly eraseMs: number;
}

/**
 * Once a second: saves the restore mark, indexes new messages for search, and keeps the write-ahead
 * log short and free of deleted text.
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
  /** Units written at the last checkpoint, and when the log last started over. */
  #unitsAtCheckpoint = 0;
  #unitsAtLogStart = 0;

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

  /** A task that fails does not keep the others from running. */
  async #runRound(): Promise<void> {
    const { background, saveMark } = this.#options;
    await background.run("restore_mark", saveMark);
    await background.run("search_indexing", () => this.#indexMessages());
    await background.run("checkpoint", () => this.#maintainLog());
  }

  async #indexMessages(): Promise<void> {
    const { indexer, pruneSearchChanges } = this.#options;
    for (let indexed = 0; indexed < INDEXED_PER_ROUND; indexed += INDEXED_AT_ONCE) {
      const { more, lastChange } = await indexer.ask({ kind: "index", most: INDEXED_AT_ONCE });
      this.#lastIndexed = lastChange;
      if (!more) break;
    }
    await pruneSearchChanges(this.#lastIndexed);
  }

  async #maintainLog(): Promise<void> {
    const hasDeletedText = this.#lastIndexed !== this.#erasedUpTo;
    const isDue = performance.now() - this.#erasedAt >= this.#options.eraseMs;
    if (hasDeletedText && isDue) await this.#truncateLog();
    const written = this.#options.group.written();
    if (written - this.#unitsAtCheckpoint < UNITS_PER_CHECKPOINT) return;
    this.#unitsAtCheckpoint = written;
    await this.#checkpoint();
    if (written - this.#unitsAtLogStart < UNITS_PER_LOG) return;
    this.#unitsAtLogStart = written;
    // The log starts over only after a checkpoint of all of it, for which writers have to pause. The
    // checkpoint before leaves little to do for this one.
    await this.#options.group.pause(() => this.#checkpoint());
  }

  /** Removes deleted and replaced text from the log. It is tried again later while somebody reads it. */
  async #truncateLog(): Promise<void> {
    const { group, indexer } = this.#options;
    const erasedUpTo = this.#lastIndexed;
    await this.#checkpoint();
    const isTruncated = await group.pause(() => indexer.ask({ kind: "truncate" }));
    if (!isTruncated) return;
    this.#erasedUpTo = erasedUpTo;
    this.#erasedAt = performance.now();
  }

  /** Moves the log into the database file, while writes go on. */
  #checkpoint(): Promise<undefined> {
    return this.#options.indexer.ask({ kind: "checkpoint" });
  }
}
