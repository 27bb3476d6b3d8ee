import type { ChatState } from "@parley/protocol";
import { createQueues } from "../async/queues.ts";
import { callWithRetry } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import type { Store } from "../model/store.ts";
import type { Operations } from "../types.ts";

type ViewApi = Pick<Operations, "setChatState" | "clearChat" | "markUnread">;

export interface OwnViewsOptions {
  store: Store;
  api: ViewApi;
  reachability: Reachability;
  /** Has a conversation fetched again. */
  refresh(chatId: string): void;
}

/** Changes how the caller sees conversations. */
export class OwnViews {
  readonly #options: OwnViewsOptions;
  readonly #inOrder = createQueues();

  constructor(options: OwnViewsOptions) {
    this.#options = options;
  }

  /** Shows the change at once. If the service refuses it, what it has is fetched. */
  async set(chatId: string, change: Partial<ChatState>): Promise<void> {
    const { store, api, reachability, refresh } = this.#options;
    store.dispatch({ type: "viewSet", chatId, set: change });
    try {
      const input = { chat_id: chatId, ...change };
      const call = () => callWithRetry(reachability, () => api.setChatState(input));
      const snapshot = await this.#inOrder(chatId, call);
      store.dispatch({ type: "snapshots", snapshots: [snapshot] });
    } catch (error) {
      refresh(chatId);
      throw error;
    }
  }

  /** The event, which may come after the reply, clears it in the model. */
  async clear(chatId: string, { erase = false }: { erase?: boolean } = {}): Promise<void> {
    const { store, api, reachability, refresh } = this.#options;
    const input = { chat_id: chatId, ...(erase && { erase }) };
    await this.#inOrder(chatId, () => callWithRetry(reachability, () => api.clearChat(input)));
    if (erase) store.dispatch({ type: "chatRemoved", chatId });
    else refresh(chatId);
  }

  async markUnread(chatId: string, seq: number): Promise<void> {
    const { store, api, reachability, refresh } = this.#options;
    const unconfirmed = store.state.unconfirmedReads[chatId];
    // What the caller has read before is not to be sent after this.
    if (unconfirmed !== undefined) {
      store.dispatch({ type: "readSettled", chatId, seq: unconfirmed });
    }
    const input = { chat_id: chatId, seq };
    await this.#inOrder(chatId, () => callWithRetry(reachability, () => api.markUnread(input)));
    refresh(chatId);
  }
}
