import type { EventFrame } from "@parley/protocol";
import { CatchUp } from "./catch-up/catch-up.ts";
import type { Connectivity } from "./connection/connectivity.ts";
import type { Uploader } from "./files/uploader.ts";
import type { Store } from "./model/store.ts";
import { setEntry } from "./model/structural-sharing.ts";
import { Attachments } from "./send/attachments.ts";
import { MessageChanges } from "./send/message-changes.ts";
import { Outbox } from "./send/outbox.ts";
import { OwnViews } from "./send/own-views.ts";
import { ReadPositions } from "./send/read-positions.ts";
import { TypingSignals } from "./send/typing.ts";
import type { BlobStorage, LiveModel, Operations, Status } from "./types.ts";

export interface ModelRuntimeOptions {
  store: Store;
  api: Operations;
  connectivity: Connectivity;
  uploader: Uploader;
  blobs: BlobStorage | undefined;
  onError(error: Error): void;
}

/** The live model and its background work. */
export class ModelRuntime {
  readonly model: LiveModel;
  readonly catchUp: CatchUp;
  readonly #store: Store;
  readonly #attachments: Attachments;
  readonly #outbox: Outbox;
  readonly #typing: TypingSignals;
  readonly #reads: ReadPositions;
  readonly #changes: MessageChanges;
  readonly #views: OwnViews;

  constructor(options: ModelRuntimeOptions) {
    const { store, api, connectivity, uploader, blobs, onError } = options;
    this.#store = store;
    this.#attachments = new Attachments(store, uploader, blobs);
    this.catchUp = new CatchUp(store, api, connectivity);
    this.#outbox = new Outbox({
      store,
      api,
      attachments: this.#attachments,
      canSend: () => connectivity.canCall(),
    });
    this.#reads = new ReadPositions(store, api, connectivity);
    this.#typing = new TypingSignals(
      store,
      // Typing is not repeated if the call fails: it would be outdated.
      (chat_id, is_typing) => void api.sendChatAction({ chat_id, is_typing }).catch(() => {}),
      () => connectivity.isConnected(),
    );
    this.#changes = new MessageChanges({ store, api, reachability: connectivity, onError });
    this.#views = new OwnViews({
      store,
      api,
      reachability: connectivity,
      refresh: (chatId) => this.catchUp.requestChat(chatId),
    });
    this.model = this.#createModel(this.#changes, this.#views);
  }

  /** Called with every event after it was applied. */
  handleEvent(frame: EventFrame): void {
    this.catchUp.handleEvent(frame);
    this.#typing.handleEvent(frame);
  }

  /** Makes waiting calls: there is a connection, or a new token. */
  flush(): void {
    this.#outbox.flush();
    this.#changes.resume();
    this.#reads.flush();
  }

  /** The caller has left the conversation. */
  discardUnsent(chatId: string): void {
    for (const { id } of this.#store.state.outbox[chatId] ?? []) this.#outbox.discard(id);
  }

  /** The connection was lost or closed. */
  halt(): void {
    this.catchUp.halt();
    this.#typing.close();
    this.#store.dispatch({ type: "typingEnded" });
  }

  /** The account has signed out. */
  reset(status: Status): void {
    this.halt();
    this.catchUp.reset();
    this.#attachments.reset();
    this.#store.dispatch({ type: "reset", status });
  }

  #createModel(changes: MessageChanges, views: OwnViews): LiveModel {
    const { catchUp } = this;
    const store = this.#store;
    const outbox = this.#outbox;
    const reads = this.#reads;
    const typing = this.#typing;
    return {
      get: store.get,
      watch: store.watch,
      openChat: (chatId) => catchUp.openChat(chatId),
      loadOlder: (chatId) => catchUp.loadOlder(chatId),
      showAround: (chatId, messageId) => catchUp.showAround(chatId, messageId),
      loadAside: (chatId, direction) => catchUp.loadAside(chatId, direction),
      closeAside: (chatId) => store.dispatch({ type: "asideClosed", chatId }),
      loadMoreChats: () => catchUp.loadMoreChats(),
      refreshAgents: () => catchUp.refreshAgents(),
      react: (messageId, emoji) => changes.react(messageId, emoji),
      edit: (messageId, content) => changes.edit(messageId, content),
      remove: (chatId, messageIds, scope) => changes.remove(chatId, messageIds, scope),
      markRead: (chatId) => reads.markRead(chatId),
      setState: (chatId, change) => views.set(chatId, change),
      clear: (chatId, options) => views.clear(chatId, options),
      markUnread: (chatId, seq) => views.markUnread(chatId, seq),
      send(chatId, content, options = {}) {
        typing.stop(chatId);
        return outbox.add(chatId, content, options);
      },
      retry: (clientMsgId) => outbox.retry(clientMsgId),
      discard: (clientMsgId) => outbox.discard(clientMsgId),
      typing: (chatId) => typing.keystroke(chatId),
      setDraft(chatId, text) {
        const drafts = setEntry(store.state.drafts, chatId, text === "" ? undefined : text);
        store.dispatch({ type: "drafts", drafts });
      },
    };
  }
}
