import { pause } from "../async/retry.ts";

/** The most keys that one call takes. */
const MAX_KEYS_PER_CALL = 100;

/** Keys that are loaded together. */
interface Batch {
  keys: Set<string>;
  done: Promise<void>;
}

/** Loads values by key in batches, each key in at most one batch at a time. */
export class Batches {
  readonly #load: (keys: string[]) => Promise<void>;
  readonly #onLoaded: () => void;
  /** Batches that are not loaded yet. */
  readonly #running = new Set<Batch>();
  #next: Batch | null = null;

  /** `onLoaded` is called after each batch, when its keys can be loaded again. */
  constructor(load: (keys: string[]) => Promise<void>, onLoaded = () => {}) {
    this.#load = load;
    this.#onLoaded = onLoaded;
  }

  /** Resolves when the batch of the key has been loaded. */
  load(key: string): Promise<void> {
    for (const batch of this.#running) if (batch.keys.has(key)) return batch.done;
    if (!this.#next || this.#next.keys.size >= MAX_KEYS_PER_CALL) this.#next = this.#createBatch();
    this.#next.keys.add(key);
    return this.#next.done;
  }

  /** A batch that is loaded after the current task, so that other keys can join it. */
  #createBatch(): Batch {
    const keys = new Set<string>();
    const load = async () => {
      await pause(0);
      if (this.#next === batch) this.#next = null;
      try {
        await this.#load([...keys]);
      } finally {
        this.#running.delete(batch);
      }
      this.#onLoaded();
    };
    const batch: Batch = { keys, done: load() };
    this.#running.add(batch);
    return batch;
  }
}
