import { createQueues } from "../async/queues.ts";
import { callWithRetry } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { isUnauthorized, isUnavailable } from "../errors.ts";
import { setReaction } from "../model/message.ts";
import { loadedMessage, type OptimisticChange } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { LocalMessage, Operations } from "../types.ts";
import { createClientMsgId } from "./unsent-message.ts";

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

type ChangeOf<Kind> = Extract<OptimisticChange, { kind: Kind }>;

export interface MessageChangesOptions {
  store: Store;
  api: MessageApi;
  reachability: Reachability;
  /** Called when the service refuses a change that was made before a reload, or in a closed tab. */
  onError(error: Error): void;
}

/**
 * Changes messages: shows each change at once, and rolls it back if the service refuses it. A change
 * stays in the state, and is made later, if the client is closed or loses its connection before.
 */
export class MessageChanges {
  readonly #store: Store;
  readonly #api: MessageApi;
  readonly #reachability: Reachability;
  readonly #onError: (error: Error) => void;
  readonly #inOrder = createQueues();
  /** Ids of the changes whose calls are under way. */
  readonly #running = new Set<string>();

  constructor({ store, api, reachability, onError }: MessageChangesOptions) {
    this.#store = store;
    this.#api = api;
    this.#reachability = reachability;
    this.#onError = onError;
  }

  /** Adds the caller's reaction, or removes it if it is there. */
  async react(messageId: string, emoji: string): Promise<void> {
    const chatId = this.#chatOf(messageId);
    const message = chatId && this.#shownMessage(chatId, messageId);
    if (!message) {
      return void (await this.#api.setMessageReaction({ message_id: messageId, emoji }));
    }
    const on = setReaction(message, emoji, true) !== message;
    await this.#start(chatId, { kind: "react", id: messageId, emoji, on });
  }

  async edit(messageId: string, content: string): Promise<void> {
    const chatId = this.#chatOf(messageId);
    if (!chatId) return void (await this.#api.editMessage({ message_id: messageId, content }));
    const at = new Date().toISOString();
    await this.#start(chatId, { kind: "edit", id: messageId, content, at });
  }

  async remove(chatId: string, ids: string[], scope: "me" | "everyone"): Promise<void> {
    await this.#start(chatId, { kind: "remove", ids, scope });
  }

  /** Makes the changes that were restored or interrupted. */
  resume(): void {
    for (const [chatId, changes] of Object.entries(this.#store.state.optimisticChanges)) {
      for (const change of changes) {
        if (this.#running.has(change.changeId)) continue;
        this.#run(chatId, change).catch((error: Error) => {
          if (!this.#isInterruption(error)) this.#onError(error);
        });
      }
    }
  }

  #start(chatId: string, given: WithoutId<OptimisticChange>): Promise<void> {
    const change = { ...given, changeId: createClientMsgId() };
    this.#store.dispatch({ type: "changeStarted", chatId, change });
    return this.#run(chatId, change);
  }

  /** Makes the calls of a change. Those of a message, and removals, run in the order of the changes. */
  async #run(chatId: string, change: OptimisticChange): Promise<void> {
    const { changeId } = change;
    const end = () => this.#store.dispatch({ type: "changeEnded", chatId, changeId });
    this.#running.add(changeId);
    try {
      const queue = change.kind === "remove" ? chatId : change.id;
      await this.#inOrder(queue, () => this.#makeCalls(chatId, change));
      end();
    } catch (error) {
      if (!this.#isInterruption(error)) end();
      throw error;
    } finally {
      this.#running.delete(changeId);
    }
  }

  /** Whether the service has not refused the change, but could not be reached. */
  #isInterruption(error: unknown): boolean {
    return (isUnavailable(error) || isUnauthorized(error)) && !this.#reachability.canCall();
  }

  #makeCalls(chatId: string, change: OptimisticChange): Promise<void> {
    switch (change.kind) {
      case "react":
        return this.#react(chatId, change);
      case "edit":
        return this.#edit(change);
      case "remove":
        return this.#remove(chatId, change);
    }
  }

  async #react(chatId: string, { id, emoji, on }: ChangeOf<"react">): Promise<void> {
    const api = this.#api;
    const target = { message_id: id, emoji };
    await this.#call<unknown>(() => (on ? api.addReaction(target) : api.removeReaction(target)));
    const chat = this.#store.state.chats[chatId];
    const known = chat && loadedMessage(chat, id);
    if (!known || setReaction(known, emoji, on) === known) return;
    // The reply came before the event and does not contain the message.
    const message = await this.#call(() => api.getMessage(target));
    this.#store.dispatch({ type: "message", message });
  }

  async #edit({ id, content }: ChangeOf<"edit">): Promise<void> {
    const message = await this.#call(() => this.#api.editMessage({ message_id: id, content }));
    this.#store.dispatch({ type: "message", message });
  }

  async #remove(chatId: string, { ids: all, scope }: ChangeOf<"remove">): Promise<void> {
    const method = scope === "me" ? "deleteMessagesForMe" : "deleteMessages";
    for (let from = 0; from < all.length; from += MAX_IDS_PER_CALL) {
      const ids = all.slice(from, from + MAX_IDS_PER_CALL);
      await this.#call<unknown>(() => this.#api[method]({ chat_id: chatId, message_ids: ids }));
      this.#store.dispatch({ type: "messagesRemoved", chatId, ids });
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
