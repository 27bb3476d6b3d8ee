import { deltaOf } from "../domain/turns.ts";
import type { Store } from "../store/store.ts";
import type { NewChunk, TurnRecord } from "../store/turns.ts";

/** Minimum time between two flushes of a stream. */
const FLUSH_INTERVAL_MS = 25;
/** Above 125 streams the interval grows with their number, so that their total cost does not. */
const FLUSH_INTERVAL_MS_PER_STREAM = 1 / 5;
/** How often streams are checked for a flush. All streams share one timer. */
const TICK_MS = 5;

/** Writes one answer into the conversation. */
export interface AnswerStream {
  /** Resolves when the stream takes more text. Undefined if it does at once. */
  backpressure(): Promise<void> | undefined;
  /** Throws if earlier text could not be stored. */
  write(text: string): void;
  /** Resolves when all text is stored and sent. Rejects if some of it could not be stored. */
  end(): Promise<void>;
  /** All text so far. */
  written(): string;
}

interface Stream {
  readonly turn: TurnRecord;
  readonly running: AbortController;
  /** All text. */
  written: string;
  /** Text that is not flushed yet. */
  buffered: string;
  /** Flushed bytes. */
  offset: number;
  flushedAt: number;
  isStoring: boolean;
  /** Settles when the last flush is stored. */
  stored: Promise<void>;
  /** Why a flush failed. Nothing is stored after that. */
  failure: { readonly error: unknown } | null;
}

interface Flush {
  readonly stream: Stream;
  readonly chunk: NewChunk;
}

/**
 * Stores the text of running turns and emits it as deltas in the same unit of work, so a crash
 * loses only text that nobody has seen. The first text of a stream is flushed at once, later text
 * is batched, and all streams that are due share one unit of work.
 */
export class Deltas {
  readonly #store: Store;
  readonly #node: string;
  /** Streams with buffered text. */
  readonly #buffered = new Set<Stream>();
  /** Streams under backpressure, with the function that releases them. */
  readonly #held = new Map<Stream, () => void>();
  #openStreams = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(store: Store, node: string) {
    this.#store = store;
    this.#node = node;
  }

  /** `running` is aborted if the turn was ended by someone else. */
  open(turn: TurnRecord, running: AbortController): AnswerStream {
    this.#openStreams++;
    const stream = newStream(turn, running);
    return {
      write: (text) => this.#write(stream, text),
      backpressure: () => this.#hold(stream),
      end: () => this.#end(stream),
      written: () => stream.written,
    };
  }

  #write(stream: Stream, text: string): void {
    if (stream.failure) throw stream.failure.error;
    if (text === "") return;
    stream.written += text;
    stream.buffered += text;
    this.#buffered.add(stream);
    // The first text, and text after a silence, does not wait for the timer.
    if (!this.#timer || isFirst(stream)) this.#flush();
    if (this.#buffered.has(stream)) this.#startTimer();
  }

  #hold(stream: Stream): Promise<void> | undefined {
    if (this.#isDue(stream, performance.now())) return undefined;
    this.#startTimer();
    return new Promise((resolve) => void this.#held.set(stream, resolve));
  }

  async #end(stream: Stream): Promise<void> {
    stream.flushedAt = Number.NEGATIVE_INFINITY;
    this.#openStreams--;
    // Another stream's flush may take the rest of this one along while it waits.
    do {
      if (!stream.isStoring) this.#flush();
      await stream.stored;
    } while (stream.isStoring || this.#buffered.has(stream));
  }

  #intervalMs(): number {
    return Math.max(FLUSH_INTERVAL_MS, this.#openStreams * FLUSH_INTERVAL_MS_PER_STREAM);
  }

  #isDue(stream: Stream, now: number): boolean {
    return stream.flushedAt + this.#intervalMs() <= now;
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    this.#release();
    // Released streams read and write what has arrived before this runs.
    setImmediate(() => this.#flush());
    this.#timer = undefined;
    if (this.#held.size + this.#buffered.size > 0) this.#startTimer();
  }

  /** Releases held streams that are due, at most twice the average per tick: this spreads bursts. */
  #release(): void {
    const now = performance.now();
    let left = Math.ceil((2 * this.#openStreams * TICK_MS) / this.#intervalMs());
    for (const [stream, release] of this.#held) {
      if (!this.#isDue(stream, now)) continue;
      this.#held.delete(stream);
      release();
      if (--left === 0) break;
    }
  }

  #flush(): void {
    const now = performance.now();
    const streams = [...this.#buffered].filter(
      (stream) => !stream.isStoring && !this.#held.has(stream) && this.#isDue(stream, now),
    );
    if (streams.length === 0) return;
    const stored = this.#storeFlushes(streams);
    for (const stream of streams) {
      this.#buffered.delete(stream);
      stream.isStoring = true;
      stream.stored = stored;
    }
    // `write` and `end` report the failure.
    stored.catch(() => undefined);
  }

  async #storeFlushes(streams: readonly Stream[]): Promise<void> {
    const flushes = streams.map(takeBuffered);
    try {
      await storeDeltas(this.#store, this.#node, flushes);
    } catch (error) {
      // Text that arrived meanwhile is dropped too: it must not follow a gap.
      for (const stream of streams) {
        this.#buffered.delete(stream);
        stream.failure = { error };
      }
      throw error;
    } finally {
      for (const stream of streams) stream.isStoring = false;
    }
  }
}

const newStream = (turn: TurnRecord, running: AbortController): Stream => ({
  turn,
  running,
  written: "",
  buffered: "",
  offset: 0,
  flushedAt: Number.NEGATIVE_INFINITY,
  isStoring: false,
  stored: Promise.resolve(),
  failure: null,
});

const isFirst = (stream: Stream) => stream.offset === 0;

function takeBuffered(stream: Stream): Flush {
  const { buffered: text, turn } = stream;
  const first = isFirst(stream);
  stream.buffered = "";
  stream.offset += Buffer.byteLength(text);
  stream.flushedAt = performance.now();
  return {
    stream,
    chunk: { turn_id: turn.id, text, offset: stream.offset, first, at: Date.now() },
  };
}

async function storeDeltas(store: Store, node: string, flushes: readonly Flush[]): Promise<void> {
  const chunks = flushes.map(({ chunk }) => chunk);
  const ended = await store.note(async (tx) => {
    const endedIds = new Set(await tx.appendChunks(node, chunks));
    for (const { stream, chunk } of flushes) {
      const { text, offset } = chunk;
      if (!endedIds.has(stream.turn.id)) tx.signal(deltaOf(stream.turn, text, offset));
    }
    return flushes.filter(({ stream }) => endedIds.has(stream.turn.id));
  });
  // These turns were ended by someone else, so their provider calls are pointless.
  for (const { stream } of ended) stream.running.abort();
}
