import type { EventFrame } from "@parley/protocol";
import { callWithRetry, pause, retryDelayMs } from "../async/retry.ts";
import { singleFlight } from "../async/single-flight.ts";
import type { Connectivity } from "../connection/connectivity.ts";
import { isUnauthorized } from "../errors.ts";
import { isOwnBehind } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { Operations } from "../types.ts";
import { ChatList } from "./chat-list.ts";
import { ChatRefresh } from "./chat-refresh.ts";
import { isOtherHistory } from "./history.ts";
import { extendAside, loadAround, loadLatest, loadOlder } from "./load-messages.ts";

export type SyncApi = Pick<
  Operations,
  "getChat" | "getChats" | "getChatHistory" | "getMessage" | "getUpdates" | "getMyAgents"
>;

/** Fetches what events do not bring: what was missed while disconnected, and more on request. */
export class CatchUp {
  readonly #store: Store;
  readonly #api: SyncApi;
  readonly #connectivity: Connectivity;
  readonly #list: ChatList;
  readonly #chatRefresh: ChatRefresh;
  /** Incremented when a connection is made or lost, so that work of an earlier one stops. */
  #connectionId = 0;
  /** Conversations that the caller opened. */
  readonly #opened = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  #agentCalls = 0;
  #answeredAgentCall = 0;

  constructor(store: Store, api: SyncApi, connectivity: Connectivity) {
    this.#store = store;
    this.#api = api;
    this.#connectivity = connectivity;
    const onOtherHistory = () => this.#startOver();
    this.#list = new ChatList(store, api, onOtherHistory);
    this.#chatRefresh = new ChatRefresh(store, api, {
      onRefreshed: (id) => this.#reopen(id),
      onOtherHistory,
    });
    store.onChange((state, before) => {
      if (state.own === before.own || !isOwnBehind(state) || !connectivity.isConnected()) return;
      // If it fails, the next connection asks again.
      void singleFlight(this.#running, "overview", () => this.#fetchOverview()).catch(() => {});
    });
  }

  /** Sets the server's history. If it is another one, everything is fetched again. */
  setHistory(historyId: string): void {
    const { historyId: before } = this.#store.state;
    this.#store.dispatch({ type: "historyId", historyId });
    if (before !== null && before !== historyId) this.#requestOpened();
  }

  /** Fetches everything that was missed. Returns false if the connection was lost meanwhile. */
  async catchUp(): Promise<boolean> {
    const connectionId = ++this.#connectionId;
    const isObsolete = () => connectionId !== this.#connectionId;
    this.#chatRefresh.start();
    for (let failures = 0; !isObsolete(); failures++) {
      try {
        await Promise.all([this.#fetchList(), this.#fetchAgents()]);
        if (isObsolete()) break;
        await this.#chatRefresh.resume();
        return !isObsolete();
      } catch (error) {
        if (isObsolete() || isUnauthorized(error)) break;
        await pause(retryDelayMs(failures, error));
      }
    }
    return false;
  }

  /** The connection was lost or closed. */
  halt(): void {
    this.#connectionId++;
    this.#chatRefresh.halt();
  }

  /** Called with every event after it was applied. */
  handleEvent(frame: EventFrame): void {
    this.#chatRefresh.handleEvent(frame);
    // If this fails, the next connection fetches the agents.
    if (this.#changesAgents(frame)) this.refreshAgents().catch(() => {});
  }

  /** Whether another client may have created, changed or deleted one of the caller's agents. */
  #changesAgents(frame: EventFrame): boolean {
    if (frame.method !== "events.accountUpdated") return false;
    return frame.params.username.startsWith(`${this.#store.state.me?.username}:`);
  }

  /** Has a conversation fetched again, if it is known. */
  requestChat(chatId: string): void {
    if (this.#store.state.chats[chatId]) this.#chatRefresh.request(chatId);
  }

  /** Forgets which conversations were opened. */
  reset(): void {
    this.#opened.clear();
    this.#requestOpened();
  }

  async openChat(chatId: string): Promise<void> {
    this.#opened.add(chatId);
    if (this.#store.state.chats[chatId]?.window) return;
    await this.#runOnce(`open ${chatId}`, async () => {
      await loadLatest(this.#store, this.#api, chatId);
      // The list contains no read positions of others.
      this.#chatRefresh.request(chatId);
    });
  }

  loadOlder(chatId: string): Promise<void> {
    return this.#runOnce(`older ${chatId}`, () => loadOlder(this.#store, this.#api, chatId));
  }

  async showAround(chatId: string, messageId: string): Promise<void> {
    await this.openChat(chatId);
    await callWithRetry(this.#connectivity, () =>
      loadAround(this.#store, this.#api, chatId, messageId),
    );
  }

  loadAside(chatId: string, direction: "older" | "newer"): Promise<void> {
    return this.#runOnce(`aside ${chatId} ${direction}`, () =>
      extendAside(this.#store, this.#api, chatId, direction),
    );
  }

  async loadMoreChats(): Promise<boolean> {
    return this.#list.hasMore && callWithRetry(this.#connectivity, () => this.#list.loadMore());
  }

  refreshAgents(): Promise<void> {
    return callWithRetry(this.#connectivity, () => this.#fetchAgents());
  }

  /** Runs a task with retries, at most one of a kind at a time. */
  #runOnce(key: string, task: () => Promise<void>): Promise<void> {
    return singleFlight(this.#running, key, () => callWithRetry(this.#connectivity, task));
  }

  async #fetchList(): Promise<void> {
    const { chats } = this.#store.state;
    const known = Object.entries(chats).map(([id, { chat }]) => [id, chat.seq]);
    await this.#fetchOverview(Object.fromEntries(known));
    for (const id of await this.#list.refresh()) this.#chatRefresh.request(id);
  }

  /** Fetches which known conversations are gone, and new names and hidden messages since the last time. */
  async #fetchOverview(known?: Record<string, number>): Promise<void> {
    const { accountsSeq: accounts_since, own } = this.#store.state;
    const own_since = own.seq;
    const page = await this.#api.getUpdates({
      ...(known && { known }),
      ...(accounts_since !== null && { accounts_since }),
      ...(own_since !== null && { own_since }),
    });
    if (!("gone" in page)) return;
    // Older servers send neither `behind` nor `history_id`.
    if (page.behind?.length || isOtherHistory(this.#store.state, page)) return this.#startOver();
    for (const chatId of page.gone) this.#store.dispatch({ type: "chatRemoved", chatId });
    this.#store.dispatch({ type: "overview", page });
    if (page.has_more) await this.#fetchOverview();
  }

  async #fetchAgents(): Promise<void> {
    const call = ++this.#agentCalls;
    const { items } = await this.#api.getMyAgents();
    // Replies may overtake each other: that of a later call is newer.
    if (call < this.#answeredAgentCall) return;
    this.#answeredAgentCall = call;
    this.#store.dispatch({ type: "agents", agents: items });
  }

  /** Discards everything fetched and fetches it again over a new connection. */
  #startOver(): void {
    this.#store.dispatch({ type: "copyDiscarded" });
    this.#requestOpened();
    this.#connectivity.reconnect();
  }

  #requestOpened(): void {
    this.#list.reset();
    this.#chatRefresh.reset();
    for (const id of this.#opened) this.#chatRefresh.request(id);
  }

  /**
   * Loads the messages of an opened conversation again after they were discarded: the copy was too
   * old, or the caller was removed and added again.
   */
  #reopen(id: string): void {
    const chat = this.#store.state.chats[id];
    if (!chat || chat.window || !this.#opened.has(id)) return;
    // If it fails, the next refresh of the conversation reopens it.
    this.openChat(id).catch(() => {});
  }
}
