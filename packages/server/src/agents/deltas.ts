import type { NewChunk, Store, TurnRecord, WriteTx } from "../store/store.ts";

/** What streams fast is gathered for so long before it is stored and sent. */
const GATHER_MS = 25;
/** However many streams there are, they are stored together, and so often at the most. */
const PAUSE_MS = 5;
/** Beyond 125 streams each gathers longer, so that all of them together cost no more. */
const GATHER_MS_PER_STREAM = 1 / 5;

/** One answer on its way into the conversation. */
export interface AnswerStream {
  /** Throws when what was written before could not be stored. */
  write(text: string): void;
  /** Resolves with everything written when it has been stored and sent; rejects when it could not be. */
  end(): Promise<string>;
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
  /** Settles when what was last taken is stored. */
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
  let timer: NodeJS.Timeout | undefined;
  let flushAt = Number.POSITIVE_INFINITY;
  let open = 0;
  let storedAt = 0;
  let storing: Promise<void> | null = null;

  const gatherMs = () => Math.max(GATHER_MS, open * GATHER_MS_PER_STREAM);
  const isReady = (stream: Stream, now: number) => stream.takenAt + gatherMs() <= now + 1;

  /** A first word, or one after a silence, leaves at once; others when they have gathered. */
  function schedule(stream: Stream): void {
    if (storing) return;
    const now = performance.now();
    const pause = stream.offset === 0 ? 0 : PAUSE_MS;
    const at = Math.max(storedAt + pause, stream.takenAt + gatherMs(), now);
    if (at >= flushAt) return;
    clearTimeout(timer);
    flushAt = at;
    if (at === now) flush();
    else timer = setTimeout(flush, at - now);
  }

  function flush(): void {
    clearTimeout(timer);
    flushAt = Number.POSITIVE_INFINITY;
    const now = performance.now();
    const ready = [...due].filter((stream) => isReady(stream, now));
    for (const stream of ready) due.delete(stream);
    const stored = keep(store, node, ready.map(take));
    for (const stream of ready) stream.stored = stored;
    storing = stored
      .catch((error) => {
        for (const stream of ready) {
          stream.failure = { error };
          due.delete(stream);
        }
      })
      .then(() => {
        storing = null;
        storedAt = performance.now();
        for (const stream of due) schedule(stream);
      });
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
          schedule(stream);
        },
        async end() {
          stream.takenAt = Number.NEGATIVE_INFINITY;
          while (due.has(stream)) {
            if (storing) await storing;
            else flush();
          }
          open--;
          await stream.stored;
          return stream.written;
        },
      };
    },
  };
}

function take(stream: Stream): Taken {
  const delta = stream.waiting;
  const first = stream.offset === 0;
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
      if (!gone.has(stream.turn.id)) announce(tx, stream.turn, chunks[place] as NewChunk);
    }
    return taken.filter(({ stream }) => gone.has(stream.turn.id));
  });
  // Somebody has ended these turns: their providers need not go on.
  for (const { stream } of ended) stream.call.abort();
}

function announce(tx: WriteTx, turn: TurnRecord, { text, offset }: NewChunk): void {
  tx.emit({
    frame: {
      method: "events.messageDelta",
      params: { id: turn.message_uuid ?? "", delta: text, offset },
    },
    to: { conversation: turn.conversation_uuid },
  });
}
