import { deltaOf } from "../domain/turns.ts";
import type { Store } from "../store/store.ts";
import type { NewChunk, TurnRecord } from "../store/turns.ts";

/** Minimum time between two flushes of a stream. */
const FLUSH_INTERVAL_MS = 25;
/** Above 125 streams the interval grows with their number, so that their total cost does not. */
const FLUSH_INTERVAL_MS_PER_STREAM = 1 / 5;
/** How often streams are checked for a flush. All streams share one timer. */
const TICK_MS = 5;

type Stream = ReturnType<typeof newStream>;

const newStream = (turn: TurnRecord, running: AbortController) => ({
  turn,
  running,
  written: "",
  /** Text that is not flushed yet. */
  buffered: "",
  /** Flushed bytes. */
  offset: 0,
  flushedAt: Number.NEGATIVE_INFINITY,
  isStoring: false,
  /** Settles when the last flush is stored. */
  stored: Promise.resolve(),
  /** Why a flush failed. Nothing is stored after that. */
  failure: null as { readonly error: unknown } | null,
});

export type Deltas = ReturnType<typeof createDeltas>;
export type AnswerStream = ReturnType<Deltas["open"]>;

/**
 * Stores the text of running turns and emits it as deltas in the same unit of work, so a crash
 * loses only text that nobody has seen. The first text of a stream is flushed at once, later text
 * is batched, and all streams that are due share one unit of work.
 */
export function createDeltas(store: Store, node: string) {
  const buffered = new Set<Stream>();
  /** Streams under backpressure, with the function that releases them. */
  const held = new Map<Stream, () => void>();
  let openStreams = 0;
  let timer: NodeJS.Timeout | undefined;

  function write(stream: Stream, text: string): void {
    if (stream.failure) throw stream.failure.error;
    if (text === "") return;
    stream.written += text;
    stream.buffered += text;
    buffered.add(stream);
    // The first text, and text after a silence, does not wait for the timer.
    if (!timer || isFirst(stream)) flush();
    if (buffered.has(stream)) startTimer();
  }

  function hold(stream: Stream): Promise<void> | undefined {
    if (isDue(stream, performance.now())) return undefined;
    startTimer();
    return new Promise((resolve) => void held.set(stream, resolve));
  }

  async function end(stream: Stream): Promise<void> {
    stream.flushedAt = Number.NEGATIVE_INFINITY;
    openStreams--;
    // Another stream's flush may take the rest of this one along while it waits.
    do {
      if (!stream.isStoring) flush();
      await stream.stored;
    } while (stream.isStoring || buffered.has(stream));
  }

  const intervalMs = () => Math.max(FLUSH_INTERVAL_MS, openStreams * FLUSH_INTERVAL_MS_PER_STREAM);
  const isDue = (stream: Stream, now: number) => stream.flushedAt + intervalMs() <= now;

  function startTimer(): void {
    timer ??= setTimeout(tick, TICK_MS);
  }

  function tick(): void {
    release();
    // Released streams read and write what has arrived before this runs.
    setImmediate(flush);
    timer = undefined;
    if (held.size + buffered.size > 0) startTimer();
  }

  /** Releases held streams that are due, at most twice the average per tick: this spreads bursts. */
  function release(): void {
    const now = performance.now();
    let left = Math.ceil((2 * openStreams * TICK_MS) / intervalMs());
    for (const [stream, resume] of held) {
      if (!isDue(stream, now)) continue;
      held.delete(stream);
      resume();
      if (--left === 0) break;
    }
  }

  function flush(): void {
    const now = performance.now();
    const streams = [...buffered].filter(
      (stream) => !stream.isStoring && !held.has(stream) && isDue(stream, now),
    );
    if (streams.length === 0) return;
    const stored = storeFlushes(streams);
    for (const stream of streams) {
      buffered.delete(stream);
      stream.isStoring = true;
      stream.stored = stored;
    }
    // `write` and `end` report the failure.
    stored.catch(() => undefined);
  }

  async function storeFlushes(streams: readonly Stream[]): Promise<void> {
    const flushes = streams.map((stream) => ({ stream, chunk: takeBuffered(stream) }));
    try {
      const ended = await store.note(async (tx) => {
        const chunks = flushes.map(({ chunk }) => chunk);
        const endedIds = new Set(await tx.appendChunks(node, chunks));
        for (const { stream, chunk } of flushes) {
          const { text, offset } = chunk;
          if (!endedIds.has(stream.turn.id)) tx.signal(deltaOf(stream.turn, text, offset));
        }
        return streams.filter(({ turn }) => endedIds.has(turn.id));
      });
      // These turns were ended by someone else, so their provider calls are pointless.
      for (const { running } of ended) running.abort();
    } catch (error) {
      // Text that arrived meanwhile is dropped too: it must not follow a gap.
      for (const stream of streams) {
        buffered.delete(stream);
        stream.failure = { error };
      }
      throw error;
    } finally {
      for (const stream of streams) stream.isStoring = false;
    }
  }

  return {
    /** Writes one answer into the conversation. `running` is aborted if someone else ended the turn. */
    open(turn: TurnRecord, running: AbortController) {
      openStreams++;
      const stream = newStream(turn, running);
      return {
        /** Throws if earlier text could not be stored. */
        write: (text: string) => write(stream, text),
        /** Resolves when the stream takes more text. Undefined if it does at once. */
        backpressure: () => hold(stream),
        /** Resolves when all text is stored and sent. Rejects if some of it could not be stored. */
        end: () => end(stream),
        written: () => stream.written,
      };
    },
  };
}

const isFirst = (stream: Stream) => stream.offset === 0;

function takeBuffered(stream: Stream): NewChunk {
  const { buffered: text, turn } = stream;
  const first = isFirst(stream);
  stream.buffered = "";
  stream.offset += Buffer.byteLength(text);
  stream.flushedAt = performance.now();
  return { turn_id: turn.id, text, offset: stream.offset, first, at: Date.now() };
}
