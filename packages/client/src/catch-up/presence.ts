import type { EventFrame, Presence } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";
import { callWithRetry } from "../async/retry.ts";
import type { Connectivity } from "../connection/connectivity.ts";
import type { Operations, PresenceCache } from "../types.ts";

/** What the service watches for one socket. */
const MAX_WATCHED = 200;
/** How long changes of what is watched are collected, such as while somebody scrolls. */
const COLLECT_MS = 50;

/** Watches the presence of people for as long as it is shown, over whichever socket is open. */
export class Presences implements PresenceCache {
  readonly #api: Pick<Operations, "watchPresence" | "setActivity">;
  readonly #connectivity: Connectivity;
  readonly #known = new Map<string, Presence>();
  readonly #watchers = new Map<string, Set<() => void>>();
  /** What the socket watches; null if that is not known. */
  #sent: string | null = null;
  #isActive = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(api: Pick<Operations, "watchPresence" | "setActivity">, connectivity: Connectivity) {
    this.#api = api;
    this.#connectivity = connectivity;
  }

  peek(username: string): Presence | undefined {
    return this.#known.get(username);
  }

  watch(username: string, listener: () => void): () => void {
    const listeners = this.#watchers.get(username) ?? new Set();
    // A function of its own, so that the same listener can watch twice and stop once.
    const own = () => listener();
    listeners.add(own);
    this.#watchers.set(username, listeners);
    this.#sendSoon();
    return () => {
      listeners.delete(own);
      if (listeners.size > 0 || this.#watchers.get(username) !== listeners) return;
      this.#watchers.delete(username);
      this.#sendSoon();
    };
  }

  setActive(isActive: boolean): void {
    if (isActive === this.#isActive) return;
    this.#isActive = isActive;
    if (this.#connectivity.isConnected()) this.#sendActivity();
  }

  /** A socket has opened: it watches nothing yet, and is not active. */
  handleOpen(): void {
    this.#sent = "";
    this.#send();
    if (this.#isActive) this.#sendActivity();
  }

  handleEvent(frame: EventFrame): void {
    if (frame.method !== "events.presence") return;
    if (this.#watchers.has(frame.params.username)) this.#set(frame.params);
  }

  /** The connection was lost, or the account has signed out: nothing is known any more. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sent = null;
    const forgotten = [...this.#known.keys()];
    this.#known.clear();
    for (const username of forgotten) this.#notify(username);
  }

  #sendActivity(): void {
    // If it fails, the next change or connection says it.
    this.#api.setActivity({ active: this.#isActive }).catch(() => {});
  }

  #sendSoon(): void {
    this.#timer ??= setTimeout(() => this.#send(), COLLECT_MS);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#connectivity.isConnected()) return;
    // Those that were shown last.
    const usernames = [...this.#watchers.keys()].slice(-MAX_WATCHED);
    const key = usernames.join(" ");
    if (key === this.#sent) return;
    this.#sent = key;
    // If it fails, as on a service of an earlier version, the next change or connection asks again.
    this.#load(usernames, key).catch(() => {});
  }

  async #load(usernames: string[], key: string): Promise<void> {
    const { items } = await callWithRetry(this.#connectivity, () =>
      this.#api.watchPresence({ usernames }),
    );
    // Others are watched now, or the connection was lost.
    if (this.#sent !== key) return;
    const watched = new Set(usernames);
    for (const username of this.#known.keys()) {
      if (!watched.has(username)) this.#known.delete(username);
    }
    for (const presence of items) this.#set(presence);
  }

  #set(presence: Presence): void {
    const known = this.#known.get(presence.username);
    if (known && isSame(known, presence)) return;
    this.#known.set(presence.username, presence);
    this.#notify(presence.username);
  }

  #notify(username: string): void {
    for (const listener of [...(this.#watchers.get(username) ?? [])]) callListener(listener);
  }
}

const isSame = (one: Presence, other: Presence) =>
  one.online === other.online && one.last_seen_at === other.last_seen_at;
