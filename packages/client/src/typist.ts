import type { State } from "./state.ts";
import type { Store } from "./store.ts";

/** The service forgets who types after 6 s: often enough for it not to, and no more. */
const RENEW_MS = 4000;
/**
 * The service says when somebody stops, and says nothing while they go on: a short limit would
 * hide whoever writes for long. Only a node that died never says it; then this ends it.
 */
const LONGEST_MS = 120_000;

export interface Typist {
  typing(chatId: string): void;
  /** What was typed has been sent. */
  stop(chatId: string): void;
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
    for (const [key, { chatId, username }] of now) {
      if (timers.has(key)) continue;
      const end = () => store.dispatch({ type: "typingEnded", chatId, username });
      timers.set(key, setTimeout(end, LONGEST_MS));
    }
  });

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
  return new Map(found.map((each) => [`${each.chatId} ${each.username}`, each]));
}
