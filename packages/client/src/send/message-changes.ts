import { createQueues } from "../async/queues.ts";
import { callWithRetry } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { setReaction } from "../model/message.ts";
import { loadedMessage, type OptimisticChange } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { LocalMessage, Operations } from "../types.ts";

/** The most messages that one call deletes. */
const MAX_IDS_PER_CALL = 100;

export type MessageApi = Pick<
  Operations,
  | "addReaction"
  | "removeReaction"
  | "setMessageReaction"
  | "editMessage"
  | "deleteMessages"
  | "deleteMessagesForMe"
  | "getMessage"
>;

type WithoutId<Change> = Change extends OptimisticChange ? Omit<Change, "changeId"> : never;

/** Changes messages: shows each change at once, and rolls it back if the service refuses it. */
export class MessageChanges {
  readonly #store: Store;
  readonly #api: MessageApi;
  readonly #reachability: Reachability;
  readonly #inOrder = createQueues();
  #lastChangeId = 0;

  constructor(store: Store, api: MessageApi, reachability: Reachability) {
    this.#store = store;
    this.#api = api;
    this.#reachability = reachability;
  }

  /** Adds the caller's reaction, or removes it if it is there. */
  async react(messageId: string, emoji: string): Promise<void> {
    const api = this.#api;
    const store = this.#store;
    const target = { message_id: messageId, emoji };
    const chatId = this.#chatOf(messageId);
    const message = chatId && this.#shownMessage(chatId, messageId);
    if (!message) return void (await api.setMessageReaction(target));
    const on = setReaction(message, emoji, true) !== message;
    const change = { kind: "react" as const, id: messageId, emoji, on };
    await this.#change(chatId, change, messageId, async () => {
      await this.#call<unknown>(() => (on ? api.addReaction(target) : api.removeReaction(target)));
      const chat = store.state.chats[chatId];
      const known = chat && loadedMessage(chat, messageId);
      if (!known || setReaction(known, emoji, on) === known) return;
      // The reply came before the event and does not contain the message.
      store.dispatch({ type: "message", message: await this.#call(() => api.getMessage(target)) });
    });
  }

  async edit(messageId: string, content: string): Promise<void> {
    const send = () => this.#api.editMessage({ message_id: messageId, content });
    const chatId = this.#chatOf(messageId);
    if (!chatId) return void (await send());
    const at = new Date().toISOString();
    await this.#change(
      chatId,
      { kind: "edit", id: messageId, content, at },
      messageId,
      async () => {
        this.#store.dispatch({ type: "message", message: await this.#call(send) });
      },
    );
  }

  async remove(chatId: string, messageIds: string[], scope: "me" | "everyone"): Promise<void> {
    const method = scope === "me" ? "deleteMessagesForMe" : "deleteMessages";
    await this.#change(chatId, { kind: "remove", ids: messageIds }, chatId, async () => {
      for (let from = 0; from < messageIds.length; from += MAX_IDS_PER_CALL) {
        const ids = messageIds.slice(from, from + MAX_IDS_PER_CALL);
        await this.#call<unknown>(() => this.#api[method]({ chat_id: chatId, message_ids: ids }));
        this.#store.dispatch({ type: "messagesRemoved", chatId, ids });
      }
    });
  }

  /** Shows a change while its calls run. Calls with the same queue run in the order of the changes. */
  async #change(
    chatId: string,
    change: WithoutId<OptimisticChange>,
    queue: string,
    act: () => Promise<void>,
  ): Promise<void> {
    const changeId = ++this.#lastChangeId;
    this.#store.dispatch({ type: "changeStarted", chatId, change: { ...change, changeId } });
    try {
      await this.#inOrder(queue, act);
    } finally {
      this.#store.dispatch({ type: "changeEnded", chatId, changeId });
    }
  }

  #call<Result>(make: () => Promise<Result>): Promise<Result> {
    return callWithRetry(this.#reachability, make);
  }

  #chatOf(messageId: string): string | undefined {
    const chats = Object.values(this.#store.state.chats);
    return chats.find((each) => loadedMessage(each, messageId))?.chat.id;
  }

  #shownMessage(chatId: string, messageId: string): LocalMessage | undefined {
    const isIt = ({ id }: LocalMessage) => id === messageId;
    return (
      this.#store.get(`messages:${chatId}`).items.findLast(isIt) ??
      this.#store.get(`aside:${chatId}`)?.items.find(isIt)
    );
  }
}
