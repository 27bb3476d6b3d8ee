import type { EventFrame } from "@parley/protocol";
import type { State } from "../model/state.ts";
import type { Store } from "../model/store.ts";

/** How often typing is reported. The service forgets it after 6 s. */
const REPORT_INTERVAL_MS = 4000;
/**
 * When somebody's typing is ended without an event. The service reports each renewal, and the end at
 * most 6 s after the last one, so this happens only if a node died.
 */
const EXPIRY_MS = 30_000;

interface Typist {
  chatId: string;
  username: string;
}

/** Reports the caller's typing, and expires the typing of others whose end was not reported. */
export class TypingSignals {
  readonly #store: Store;
  readonly #report: (chatId: string, isTyping: boolean) => void;
  readonly #isConnected: () => boolean;
  readonly #reportedAt = new Map<string, number>();
  readonly #expiryTimers = new Map<string, ReturnType<typeof setTimeout>>();

  constructor(
    store: Store,
    report: (chatId: string, isTyping: boolean) => void,
    isConnected: () => boolean,
  ) {
    this.#store = store;
    this.#report = report;
    this.#isConnected = isConnected;
    store.onChange((state, before) => {
      if (state.typing !== before.typing) this.#updateTimers(state);
    });
  }

  /** Called on every keystroke of the caller. */
  keystroke(chatId: string): void {
    const now = Date.now();
    const elapsedMs = now - (this.#reportedAt.get(chatId) ?? 0);
    if (!this.#isConnected() || elapsedMs < REPORT_INTERVAL_MS) return;
    this.#reportedAt.set(chatId, now);
    this.#report(chatId, true);
  }

  /** Ends the caller's typing, because the message was sent. */
  stop(chatId: string): void {
    if (this.#reportedAt.delete(chatId) && this.#isConnected()) this.#report(chatId, false);
  }

  /** Called with every event after it was applied. Renewed typing expires later. */
  handleEvent(frame: EventFrame): void {
    if (frame.method !== "events.typing" || !frame.params.is_typing) return;
    const { conversation_id: chatId, actor } = frame.params;
    const typist = { chatId, username: actor.username };
    if (this.#expiryTimers.has(keyOf(typist))) this.#startTimer(typist);
  }

  close(): void {
    for (const timer of this.#expiryTimers.values()) clearTimeout(timer);
    this.#expiryTimers.clear();
    this.#reportedAt.clear();
  }

  #updateTimers(state: State): void {
    const typists = new Map(peopleTyping(state).map((each) => [keyOf(each), each]));
    for (const [key, timer] of this.#expiryTimers) {
      if (typists.has(key)) continue;
      clearTimeout(timer);
      this.#expiryTimers.delete(key);
    }
    for (const [key, typist] of typists) if (!this.#expiryTimers.has(key)) this.#startTimer(typist);
  }

  #startTimer(typist: Typist): void {
    const key = keyOf(typist);
    clearTimeout(this.#expiryTimers.get(key));
    const end = () => this.#store.dispatch({ type: "typingEnded", ...typist });
    this.#expiryTimers.set(key, setTimeout(end, EXPIRY_MS));
  }
}

/** Agents are left out: they type as long as their message streams, which may take minutes. */
const peopleTyping = ({ typing }: State): Typist[] =>
  Object.entries(typing).flatMap(([chatId, { actors }]) =>
    actors.filter(({ kind }) => kind === "human").map(({ username }) => ({ chatId, username })),
  );

const keyOf = ({ chatId, username }: Typist) => `${chatId} ${username}`;
