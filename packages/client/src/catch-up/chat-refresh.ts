import type { EventFrame } from "@parley/protocol";
import { pause, retryDelayMs } from "../async/retry.ts";
import { singleFlight } from "../async/single-flight.ts";
import { isOutOfReach, isUnavailable } from "../errors.ts";
import { bringsToTop } from "../model/events.ts";
import { isBehind, isStale, loadedSeq, type State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { Operations } from "../types.ts";
import { isOtherHistory } from "./history.ts";

const UPDATES_PER_PAGE = 100;
/** A conversation that lacks more changes than this is loaded again instead of updated. */
const MAX_MISSING_CHANGES = 1000;

type RefreshApi = Pick<Operations, "getChat" | "getMessage" | "getUpdates">;

export interface RefreshListener {
  /** A conversation is up to date again. */
  onRefreshed(id: string): void;
  /** The server has another history than the one everything was fetched from. */
  onOtherHistory(): void;
}

/**
 * Brings single conversations up to date. A conversation is fetched when its counter is behind,
 * when events did not determine its state, or on request.
 */
export class ChatRefresh {
  readonly #store: Store;
  readonly #api: RefreshApi;
  readonly #listener: RefreshListener;
  /** Incremented when a connection is made or lost, so that work of an earlier one stops. */
  #connectionId = 0;
  #isActive = false;
  /** Conversations to fetch even if they seem up to date. */
  readonly #requested = new Set<string>();
  readonly #runningChats = new Map<string, Promise<void>>();
  readonly #runningMessages = new Map<string, Promise<void>>();

  constructor(store: Store, api: RefreshApi, listener: RefreshListener) {
    this.#store = store;
    this.#api = api;
    this.#listener = listener;
    store.onChange((state, before) => this.#checkChanges(state, before));
  }

  /** A connection was made. Nothing is fetched until `resume`. */
  start(): void {
    this.#connectionId++;
    this.#isActive = false;
  }

  /**
   * Fetches everything that is missing, and from now on missing changes as soon as they are noticed.
   * Does not wait for conversations that the service fails to serve: they are fetched later.
   */
  async resume(): Promise<void> {
    this.#isActive = true;
    const chats = Object.entries(this.#store.state.chats);
    // The list contains no read positions of others, so opened conversations are always fetched.
    for (const [id, { window }] of chats) if (window) this.#requested.add(id);
    const ids = new Set([
      ...this.#requested,
      ...chats.map(([id]) => id).filter(this.#needsRefresh),
    ]);
    // No counter tells that deltas were missed, so streaming messages are always fetched.
    const streaming = chats
      .flatMap(([, { window, aside }]) => [...(window?.items ?? []), ...(aside?.items ?? [])])
      .filter(({ finalized_at }) => finalized_at === null);
    await Promise.all([
      ...[...ids].map((id) => this.#refreshIfServed(id)),
      ...streaming.map(({ id }) => this.#fetchMessage(id)),
    ]);
  }

  /** The connection was lost. */
  halt(): void {
    this.#connectionId++;
    this.#isActive = false;
    this.#runningChats.clear();
    this.#runningMessages.clear();
  }

  /** Has a conversation fetched even if it seems up to date. */
  request(id: string): void {
    this.#requested.add(id);
    if (this.#isActive) void this.#refreshChat(id);
  }

  /** Drops all requests. */
  reset(): void {
    this.#requested.clear();
  }

  /** Called with every event after it was applied. */
  handleEvent(frame: EventFrame): void {
    if (!frame.at || !bringsToTop(frame)) return;
    const { conversation_id, seq } = frame.at;
    const { chats, left } = this.#store.state;
    if (!chats[conversation_id] && seq > (left[conversation_id] ?? -1)) {
      this.request(conversation_id);
    }
  }

  #checkChanges(state: State, before: State): void {
    if (!this.#isActive) return;
    const isChanged = (id: string) =>
      state.chats[id] !== before.chats[id] ||
      state.unconfirmedReads[id] !== before.unconfirmedReads[id];
    if (state.chats !== before.chats || state.unconfirmedReads !== before.unconfirmedReads) {
      for (const id of Object.keys(state.chats)) {
        if (isChanged(id) && this.#needsRefresh(id)) void this.#refreshChat(id);
      }
    }
    if (state.earlyDeltas === before.earlyDeltas) return;
    for (const id of Object.keys(state.earlyDeltas)) void this.#fetchMessage(id);
  }

  readonly #needsRefresh = (id: string): boolean => {
    const { chats, unconfirmedReads } = this.#store.state;
    const chat = chats[id];
    if (this.#requested.has(id)) return true;
    if (chat === undefined) return false;
    // Replies have the right unread counts once the server has the caller's read position.
    return isBehind(chat) || (isStale(chat) && !(id in unconfirmedReads));
  };

  /** Resolves when the conversation is up to date, or the service fails to serve it. */
  #refreshIfServed(id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#refreshChat(id, resolve).then(resolve, reject);
    });
  }

  /** `onFailing` is called when an attempt fails although the service can be reached. */
  #refreshChat(id: string, onFailing = () => {}): Promise<void> {
    return singleFlight(this.#runningChats, id, () => this.#fetchUntilCurrent(id, onFailing));
  }

  async #fetchUntilCurrent(id: string, onFailing: () => void): Promise<void> {
    const connectionId = this.#connectionId;
    const isObsolete = () => connectionId !== this.#connectionId;
    for (let failures = 0; this.#needsRefresh(id) && !isObsolete(); ) {
      try {
        await this.#fetchMissing(id);
      } catch (error) {
        if (isObsolete()) return;
        if (isOutOfReach(error)) this.#store.dispatch({ type: "chatRemoved", chatId: id });
        else {
          this.#requested.add(id);
          if (!isUnavailable(error)) onFailing();
          await pause(retryDelayMs(failures++, error));
        }
      }
    }
    if (!isObsolete()) this.#listener.onRefreshed(id);
  }

  /** Fetches the missing changes of loaded messages, or else the conversation. */
  async #fetchMissing(id: string): Promise<void> {
    const chat = this.#store.state.chats[id];
    const since = chat ? loadedSeq(chat) : null;
    if (chat && since !== null && isBehind(chat)) {
      if (chat.highestSeq - since <= MAX_MISSING_CHANGES) return this.#fetchUpdates(id, since);
      this.#store.dispatch({ type: "unloaded", chatId: id });
    }
    this.#requested.delete(id);
    const { invalidations: validates = 0, moves = 0 } = chat ?? {};
    const snapshot = await this.#api.getChat({ chat_id: id });
    if (snapshot.seq < (chat?.chat.seq ?? 0)) return this.#listener.onOtherHistory();
    this.#store.dispatch({ type: "snapshots", snapshots: [snapshot], validates, moves });
  }

  async #fetchUpdates(id: string, since_seq: number): Promise<void> {
    const page = await this.#api.getUpdates({ chat_id: id, since_seq, limit: UPDATES_PER_PAGE });
    if (!("messages" in page)) return;
    if (page.conversation.seq < since_seq || isOtherHistory(this.#store.state, page)) {
      return this.#listener.onOtherHistory();
    }
    this.#store.dispatch({ type: "updates", chatId: id, page, since: since_seq });
  }

  /** Fetches a streaming message that lacks deltas. */
  #fetchMessage(id: string): Promise<void> {
    return singleFlight(this.#runningMessages, id, async () => {
      // The call fails if the message was deleted, which an event tells, or if the connection was
      // lost, after which `resume` fetches it.
      const message = await this.#api.getMessage({ message_id: id }).catch(() => null);
      if (message) this.#store.dispatch({ type: "message", message });
    });
  }
}
