import { callWithRetry } from "../async/retry.ts";
import { singleFlight } from "../async/single-flight.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { mayRetry } from "../errors.ts";
import type { Store } from "../model/store.ts";
import type { Operations } from "../types.ts";

/** Moves the caller's read positions: at once in the model, and on the server when it is reachable. */
export class ReadPositions {
  readonly #store: Store;
  readonly #api: Pick<Operations, "readChat">;
  readonly #reachability: Reachability;
  readonly #sending = new Map<string, Promise<void>>();

  constructor(store: Store, api: Pick<Operations, "readChat">, reachability: Reachability) {
    this.#store = store;
    this.#api = api;
    this.#reachability = reachability;
  }

  markRead(chatId: string): void {
    const chat = this.#store.state.chats[chatId]?.chat;
    const seq = chat?.last_message?.seq ?? 0;
    if (!chat || seq <= chat.last_read_seq) return;
    this.#store.dispatch({ type: "read", chatId, seq });
    this.flush();
  }

  /** Sends the positions that the server has not confirmed yet. */
  flush(): void {
    for (const chatId of Object.keys(this.#store.state.unconfirmedReads)) {
      void singleFlight(this.#sending, chatId, () => this.#send(chatId));
    }
  }

  async #send(chatId: string): Promise<void> {
    const unconfirmed = () => this.#store.state.unconfirmedReads[chatId];
    for (let seq = unconfirmed(); seq !== undefined; seq = unconfirmed()) {
      try {
        // The position may move on between two attempts.
        await callWithRetry(this.#reachability, () => {
          seq = unconfirmed() ?? seq ?? 0;
          return this.#api.readChat({ chat_id: chatId, seq });
        });
      } catch (error) {
        // The next connection or the next start sends it.
        if (mayRetry(error)) return;
      }
      this.#store.dispatch({ type: "readSettled", chatId, seq });
    }
  }
}
