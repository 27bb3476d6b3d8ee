import type { EventFrame } from "@parley/protocol";
import type { Connectivity } from "./connection/connectivity.ts";
import type { Store } from "./model/store.ts";
import { put } from "./model/structural-sharing.ts";
import { commands } from "./send/commands.ts";
import { outbox } from "./send/outbox.ts";
import { typist } from "./send/typing.ts";
import type { Keeper } from "./storage/unsent.ts";
import { type Sync, synchronizer } from "./sync/sync.ts";
import type { LiveModel, Operations, Status } from "./types.ts";

export interface ModelParts {
  model: LiveModel;
  sync: Sync;
  /** Takes note of an event that the state has been told of. */
  heard(frame: EventFrame): void;
  /** Calls that had to wait may be made: there is a connection, or another token. */
  reachable(): void;
  /** The connection was lost, or is not wanted any more. */
  halted(): void;
  /** Whoever was signed in is not any more. */
  reset(status: Status): void;
}

/** The live model, and how it hears of the connection. */
export function liveModel(
  store: Store,
  api: Operations,
  connectivity: Connectivity,
  kept: Keeper,
): ModelParts {
  const sync = synchronizer(store, api, connectivity);
  const sending = outbox(store, api, connectivity.canCall);
  const typing = typist(
    store,
    (chat_id, is_typing) => void api.sendChatAction({ chat_id, is_typing }).catch(() => {}),
    connectivity.isConnected,
  );
  const { tellRead, ...changes } = commands(store, api, connectivity);
  const model: LiveModel = {
    get: store.get,
    watch: store.watch,
    openChat: sync.openChat,
    loadOlder: sync.loadOlder,
    showAround: sync.showAround,
    loadAside: sync.loadAside,
    closeAside: sync.closeAside,
    loadMoreChats: sync.loadMoreChats,
    refreshAgents: sync.refreshAgents,
    ...changes,
    send(chatId, content, { replyTo } = {}) {
      typing.stop(chatId);
      return sending.add(chatId, content, replyTo);
    },
    retry: sending.retry,
    discard: sending.discard,
    typing: typing.typing,
    setDraft(chatId, text) {
      const drafts = put(store.state.drafts, chatId, text === "" ? undefined : text);
      store.dispatch({ type: "drafts", drafts });
    },
  };
  const halted = () => {
    sync.halt();
    typing.close();
    store.dispatch({ type: "typingEnded" });
  };
  return {
    model,
    sync,
    heard(frame) {
      sync.heard(frame);
      typing.heard(frame);
    },
    reachable() {
      sending.flush();
      tellRead();
    },
    halted,
    reset(status) {
      halted();
      sync.reset();
      kept.close();
      store.dispatch({ type: "reset", status });
    },
  };
}
