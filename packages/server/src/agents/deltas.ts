import type { Store, TurnRecord, WriteTx } from "../store/store.ts";

/** What streams fast is gathered for so long before it is stored and sent. */
const GATHER_MS = 25;
/** When there is so much that storing it takes long, gathering takes so many times as long. */
const REST = 4;

/** One answer on its way into the conversation. */
export interface AnswerStream {
  write(text: string): void;
  /** Resolves when everything written has been stored and sent; rejects when it could not be. */
  end(): Promise<void>;
}

export interface Deltas {
  open(turn: TurnRecord, call: AbortController): AnswerStream;
}

interface Stream {
  readonly turn: TurnRecord;
  readonly call: AbortController;
  waiting: string;
  /** Bytes of what has been taken to be stored. */
  offset: number;
  takenAt: number;
  /** Settles when what was last taken is stored. */
  stored: Promise<void>;
}

type Taken = { stream: Stream; delta: string; first: boolean };

/**
 * Stores what models say as it comes, and has it sent once it is stored: so a crash loses only
 * what nobody has seen. A first word leaves at once, later ones gather for a moment, and all the
 * streams of a moment share one unit of work.
 */
export function deltas(store: Store): Deltas {
  const due = new Set<Stream>();
  let timer: NodeJS.Timeout | undefined;
  let storing = false;
  let gatherMs = GATHER_MS;

  const isUrgent = (stream: Stream) => performance.now() - stream.takenAt >= gatherMs;

  function schedule(urgent: boolean): void {
    if (storing || due.size === 0) return;
    if (urgent) {
      flush();
    } else {
      timer ??= setTimeout(flush, gatherMs);
    }
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const taken = [...due].map(take);
    due.clear();
    storing = true;
    const began = performance.now();
    const stored = keep(store, taken).finally(() => {
      storing = false;
      gatherMs = Math.max(GATHER_MS, (performance.now() - began) * REST);
      schedule([...due].some(isUrgent));
    });
    for (const { stream } of taken) {
      stream.stored = stored;
      // Heard by whoever ends the stream; until then it is nobody's failure yet.
      stored.catch(() => {});
    }
  }

  return {
    open(turn, call) {
      const stream: Stream = {
        turn,
        call,
        waiting: "",
        offset: 0,
        takenAt: 0,
        stored: Promise.resolve(),
      };
      return {
        write(text) {
          if (text === "") return;
          stream.waiting += text;
          due.add(stream);
          schedule(isUrgent(stream));
        },
        async end() {
          while (due.has(stream)) {
            schedule(true);
            if (due.has(stream)) await nextTurn();
          }
          await stream.stored;
        },
      };
    },
  };
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

function take(stream: Stream): Taken {
  const delta = stream.waiting;
  const first = stream.offset === 0;
  stream.waiting = "";
  stream.offset += Buffer.byteLength(delta);
  stream.takenAt = performance.now();
  return { stream, delta, first };
}

async function keep(store: Store, taken: readonly Taken[]): Promise<void> {
  const offsets = taken.map(({ stream }) => stream.offset);
  const ended = await store.note(async (tx) => {
    const gone: Stream[] = [];
    for (const [place, { stream, delta, first }] of taken.entries()) {
      const offset = offsets[place] as number;
      if (!(await append(tx, stream.turn, { text: delta, offset, first }))) gone.push(stream);
    }
    return gone;
  });
  // Somebody has ended these turns: their providers need not go on.
  for (const { call } of ended) call.abort();
}

async function append(
  tx: WriteTx,
  turn: TurnRecord,
  chunk: { text: string; offset: number; first: boolean },
): Promise<boolean> {
  if (!(await tx.appendChunk(turn.id, { ...chunk, at: Date.now() }))) return false;
  tx.emit({
    frame: {
      method: "events.messageDelta",
      params: { id: turn.message_uuid ?? "", delta: chunk.text, offset: chunk.offset },
    },
    to: { conversation: turn.conversation_uuid },
  });
  return true;
}
