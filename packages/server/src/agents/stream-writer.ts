import type { Store, TurnRecord } from "../store/store.ts";

/** Deltas that come fast are gathered for so long. */
const GATHER_MS = 25;

export interface StreamWriter {
  write(text: string): void;
  /** Resolves when everything written has been stored and sent. */
  end(): Promise<void>;
}

/**
 * Stores what a model says as it comes, and has it sent once it is stored: so a crash loses only
 * what nobody has seen. The first delta leaves at once, later ones gather for a moment.
 */
export function streamWriter(store: Store, turn: TurnRecord, call: AbortController): StreamWriter {
  let waiting = "";
  let offset = 0;
  let lastFlush = 0;
  let timer: NodeJS.Timeout | undefined;
  let storing: Promise<void> | null = null;

  function schedule(): void {
    if (timer || storing || waiting === "") return;
    const pause = lastFlush + GATHER_MS - performance.now();
    if (pause <= 0) flush();
    else timer = setTimeout(flush, pause);
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    const delta = waiting;
    waiting = "";
    lastFlush = performance.now();
    offset += Buffer.byteLength(delta);
    storing = keep(delta, offset).finally(() => {
      storing = null;
      schedule();
    });
  }

  async function keep(delta: string, reached: number): Promise<void> {
    const kept = await store.write(async (tx) => {
      const running = await tx.appendChunk(turn.id, {
        text: delta,
        offset: reached,
        at: Date.now(),
      });
      if (running && turn.message_uuid !== null) {
        tx.emit({
          frame: {
            method: "events.messageDelta",
            params: { id: turn.message_uuid, delta, offset: reached },
          },
          to: { conversation: turn.conversation_uuid },
        });
      }
      return running;
    });
    // Somebody has ended the turn: the provider need not go on.
    if (!kept) call.abort();
  }

  return {
    write(piece) {
      waiting += piece;
      schedule();
    },
    async end() {
      while (storing || waiting !== "") {
        if (storing) await storing;
        else flush();
      }
    },
  };
}
