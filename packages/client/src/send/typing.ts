import type { EventFrame } from "@parley/protocol";
import type { State } from "../model/state.ts";
import type { Store } from "../model/store.ts";

/** The service forgets who types after 6 s: often enough for it not to, and no more. */
const RENEW_MS = 4000;
/**
 * The service repeats that somebody types at least every 6 s and says when they stop. Only a node
 * that died says neither: then the indicator ends after this time.
 */
const EXPIRES_MS = 30_000;

export interface Typist {
  typing(chatId: string): void;
  /** What was typed has been sent. */
  stop(chatId: string): void;
  /** Takes note of an event that the model has been told of. */
  heard(frame: EventFrame): void;
  close(): void;
}

/** Tells others that the caller types, and ends the typing of others that was never ended. */
export function typist(
  store: Store,
  tell: (chatId: string, isTyping: boolean) => void,
  isConnected: () => boolean,
): Typist {
  const toldAt = new Map<string, number>();
  const timers = new Map<string, ReturnType<typeof setTimeout>>();

  store.onChange((state, before) => {
    if (state.typing === before.typing) return;
    const now = actors(state);
    for (const [key, timer] of timers) {
      if (now.has(key)) continue;
      clearTimeout(timer);
      timers.delete(key);
    }
    for (const [key, actor] of now) if (!timers.has(key)) expire(key, actor);
  });

  function expire(key: string, actor: { chatId: string; username: string }): void {
    clearTimeout(timers.get(key));
    const end = () => store.dispatch({ type: "typingEnded", ...actor });
    timers.set(key, setTimeout(end, EXPIRES_MS));
  }

  return {
    typing(chatId) {
      const now = Date.now();
      if (!isConnected() || now - (toldAt.get(chatId) ?? 0) < RENEW_MS) return;
      toldAt.set(chatId, now);
      tell(chatId, true);
    },
    stop(chatId) {
      if (toldAt.delete(chatId) && isConnected()) tell(chatId, false);
    },
    heard(frame) {
      if (frame.method !== "events.typing" || !frame.params.is_typing) return;
      const actor = {
        chatId: frame.params.conversation_id,
        username: frame.params.actor.username,
      };
      const key = keyOf(actor);
      if (timers.has(key)) expire(key, actor);
    },
    close() {
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
      toldAt.clear();
    },
  };
}

/** People, not agents: those type for as long as their message streams, which may be long. */
function actors({ typing }: State) {
  const found = Object.entries(typing).flatMap(([chatId, { actors: some }]) =>
    some.filter(({ kind }) => kind === "human").map(({ username }) => ({ chatId, username })),
  );
  return new Map(found.map((each) => [keyOf(each), each]));
}

const keyOf = ({ chatId, username }: { chatId: string; username: string }) =>
  `${chatId} ${username}`;
