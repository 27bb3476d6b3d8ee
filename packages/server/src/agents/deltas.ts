import { deltaOf } from "../domain/turns.ts";
import type { Store } from "../store/store.ts";
import type { NewChunk, TurnRecord } from "../store/turns.ts";

/** What streams fast is gathered for so long before it is stored and sent. */
const GATHER_MS = 25;
/** However many streams there are, they are stored together, once in so long. */
const BEAT_MS = 5;
/** Beyond 125 streams each gathers longer, so that all of them together cost no more. */
const GATHER_MS_PER_STREAM = 1 / 5;

/** One answer on its way into the conversation. */
export interface AnswerStream {
  /** Settles when more is wanted: what comes fast is best left alone for a moment. */
  wanted(): Promise<void> | undefined;
  /** Throws when what was written before could not be stored. */
  write(text: string): void;
  /** Resolves when everything written has been stored and sent; rejects when it could not be. */
  end(): Promise<void>;
  /** Everything written. */
  written(): string;
}

export interface Deltas {
  open(turn: TurnRecord, call: AbortController): AnswerStream;
}

interface Stream {
  readonly turn: TurnRecord;
  readonly call: AbortController;
  /** All of it. */
  written: string;
  waiting: string;
  /** Bytes of what has been taken to be stored. */
  offset: number;
  /** When it last was; before that nothing holds it back. */
  takenAt: number;
  /** Whether what was last taken is on its way. */
  storing: boolean;
  /** Settles when it has been stored. */
  stored: Promise<void>;
  /** Why something of it could not be stored; then nothing that came after it is. */
  failure: { readonly error: unknown } | null;
}

type Taken = { stream: Stream; delta: string; first: boolean };

/**
 * Stores what models say as it comes, and has it sent once it is stored: so a crash loses only
 * what nobody has seen. A first word leaves at once, later ones gather for a moment, and all the
 * streams of a moment share one unit of work.
 */
export function deltas(store: Store, node: string): Deltas {
  const due = new Set<Stream>();
  const resting = new Map<Stream, () => void>();
  let beat: NodeJS.Timeout | undefined;
  let open = 0;

  const gatherMs = () => Math.max(GATHER_MS, open * GATHER_MS_PER_STREAM);
  const isRested = (stream: Stream, now: number) => stream.takenAt + gatherMs() <= now;

  const keepTime = () => {
    beat ??= setTimeout(step, BEAT_MS);
  };

  function step(): void {
    const now = performance.now();
    // Streams that fell into step are pulled apart again: all of them at once would be a hold-up.
    let most = Math.ceil((2 * open * BEAT_MS) / gatherMs());
    for (const [stream, resume] of resting) {
      if (!isRested(stream, now)) continue;
      resting.delete(stream);
      resume();
      if (--most === 0) break;
    }
    // Whatever those have at hand is read and written by then.
    setImmediate(flush);
    beat = undefined;
    if (resting.size + due.size > 0) keepTime();
  }

  function flush(): void {
    const now = performance.now();
    const ready = [...due].filter(
      (stream) => !stream.storing && !resting.has(stream) && isRested(stream, now),
    );
    if (ready.length === 0) return;
    const stored = keep(store, node, ready.map(take))
      .catch((error) => {
        // Before anything that came after it could be taken.
        for (const stream of ready) {
          due.delete(stream);
          stream.failure = { error };
        }
        throw error;
      })
      .finally(() => {
        for (const stream of ready) stream.storing = false;
      });
    for (const stream of ready) {
      due.delete(stream);
      stream.storing = true;
      stream.stored = stored;
    }
    stored.catch(() => {});
  }

  return {
    open(turn, call) {
      open++;
      const stream: Stream = {
        turn,
        call,
        written: "",
        waiting: "",
        offset: 0,
        takenAt: Number.NEGATIVE_INFINITY,
        storing: false,
        stored: Promise.resolve(),
        failure: null,
      };
      return {
        write(text) {
          if (stream.failure) throw stream.failure.error;
          if (text === "") return;
          stream.written += text;
          stream.waiting += text;
          due.add(stream);
          // A first word, or one after a silence, leaves at once.
          if (!beat || isFirst(stream)) flush();
          if (due.has(stream)) keepTime();
        },
        wanted() {
          if (isRested(stream, performance.now())) return undefined;
          keepTime();
          return new Promise((resolve) => void resting.set(stream, resolve));
        },
        async end() {
          stream.takenAt = Number.NEGATIVE_INFINITY;
          open--;
          // While it waits, what is left may be taken along with what others have.
          do {
            if (!stream.storing) flush();
            await stream.stored;
          } while (stream.storing || due.has(stream));
        },
        written: () => stream.written,
      };
    },
  };
}

const isFirst = (stream: Stream) => stream.offset === 0;

function take(stream: Stream): Taken {
  const delta = stream.waiting;
  const first = isFirst(stream);
  stream.waiting = "";
  stream.offset += Buffer.byteLength(delta);
  stream.takenAt = performance.now();
  return { stream, delta, first };
}

async function keep(store: Store, node: string, taken: readonly Taken[]): Promise<void> {
  const at = Date.now();
  const chunks = taken.map(({ stream, delta, first }) => ({
    turn_id: stream.turn.id,
    text: delta,
    offset: stream.offset,
    first,
    at,
  }));
  const ended = await store.note(async (tx) => {
    const gone = new Set(await tx.appendChunks(node, chunks));
    for (const [place, { stream }] of taken.entries()) {
      const { text, offset } = chunks[place] as NewChunk;
      if (!gone.has(stream.turn.id)) tx.emit(deltaOf(stream.turn, text, offset));
    }
    return taken.filter(({ stream }) => gone.has(stream.turn.id));
  });
  // Somebody has ended these turns: their providers need not go on.
  for (const { stream } of ended) stream.call.abort();
}
