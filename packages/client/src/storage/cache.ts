import type { CachedState, State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import { trimWindow } from "../model/window.ts";
import type { KeyValueStorage } from "../types.ts";
import { fingerprint } from "./fingerprint.ts";
import { onPageHide } from "./page-events.ts";

const KEY = "parley:state";
/** The version of the stored format. A cache of another version is ignored. */
const VERSION = 3;
/** How long a change waits for further ones before all are stored. */
const SAVE_DELAY_MS = 2000;
const MAX_CHATS = 30;
const MAX_WINDOWS = 5;
const MAX_MESSAGES_PER_WINDOW = 40;
/** Storages of browsers are small, and unsent messages need room too. */
const MAX_CHARACTERS = 500_000;

/** Stores the latest state, so that the next start can show it before there is a connection. */
export class StateCache {
  readonly #store: Store;
  readonly #storage: KeyValueStorage | undefined;
  readonly #token: () => string | null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(store: Store, storage: KeyValueStorage | undefined, token: () => string | null) {
    this.#store = store;
    this.#storage = storage;
    this.#token = token;
    if (!storage) return;
    store.onChange((state, before) => {
      const isSame =
        state.chats === before.chats &&
        state.agents === before.agents &&
        state.blocked === before.blocked;
      if (isSame || state.me === null) return;
      this.#timer ??= unref(setTimeout(() => this.save(), SAVE_DELAY_MS));
    });
    onPageHide(() => this.save());
  }

  /** Restores the state, if it was stored by a client with the same token. */
  restore(token: string): void {
    try {
      const stored = JSON.parse(this.#storage?.getItem(KEY) ?? "null");
      if (stored?.version !== VERSION || stored.owner !== fingerprint(token)) return;
      this.#store.dispatch({ type: "restored", cached: stored as CachedState });
    } catch {
      // Damaged: the state is fetched instead.
      this.#storage?.removeItem(KEY);
    }
  }

  /** Stores a change that waits to be stored. */
  save(): void {
    if (this.#timer === undefined) return;
    this.#cancelSave();
    const token = this.#token();
    const cached = token !== null && serialize(this.#store.state);
    if (!cached) return;
    try {
      const owner = fingerprint(token);
      this.#storage?.setItem(KEY, `{"version":${VERSION},"owner":"${owner}",${cached}}`);
    } catch {
      // The storage is full: an old state would take the room of unsent messages.
      this.#storage?.removeItem(KEY);
    }
  }

  clear(): void {
    this.#cancelSave();
    this.#storage?.removeItem(KEY);
  }

  #cancelSave(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Lets a Node or Bun process exit while the timer runs. */
function unref(timer: ReturnType<typeof setTimeout>): ReturnType<typeof setTimeout> {
  if (typeof timer === "object") (timer as { unref?(): void }).unref?.();
  return timer;
}

/** The JSON properties of the cached state, with as many conversations and messages as there is room for. */
function serialize({ me, ...state }: State): string | null {
  if (!me) return null;
  const { historyId, accountsSeq, agents, blocked, unconfirmedReads: reading } = state;
  const own = state.own.seq;
  const counters = { historyId, accountsSeq, own };
  const rest: Omit<CachedState, "chats"> = { ...counters, me, agents, blocked, reading };
  return `${JSON.stringify(rest).slice(1, -1)},"chats":[${serializeChats(state)}]`;
}

function serializeChats({ chats, order }: Pick<State, "chats" | "order">): string[] {
  let room = MAX_CHARACTERS;
  let windows = MAX_WINDOWS;
  const serialized: string[] = [];
  for (const id of order.slice(0, MAX_CHATS)) {
    const { chat, window } = chats[id] ?? {};
    if (!chat) continue;
    const latest = windows > 0 && window ? trimWindow(window, MAX_MESSAGES_PER_WINDOW) : null;
    const whole = JSON.stringify({ chat, window: latest });
    const part = whole.length <= room ? whole : JSON.stringify({ chat, window: null });
    if (part.length > room) break;
    if (latest && part === whole) windows--;
    room -= part.length;
    serialized.push(part);
  }
  return serialized;
}
