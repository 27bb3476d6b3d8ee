import type { EventFrame, EventName, InputOf, OutputOf } from "@parley/protocol";
import { commands } from "./commands.ts";
import { keeper } from "./keep.ts";
import { operationsOver } from "./operations.ts";
import { outbox } from "./outbox.ts";
import { session } from "./session.ts";
import { put } from "./share.ts";
import { createStore, type Store } from "./store.ts";
import { type Sync, synchronizer } from "./sync.ts";
import type { Client, ClientOptions, LiveModel, Operations } from "./types.ts";
import { typist } from "./typist.ts";

/** A client of the service: its operations, its events, and a live model of what its user sees. */
export function createClient(options: ClientOptions = {}): Client {
  const store = createStore(options.token === undefined ? "signed_out" : "offline");
  const kept = keeper(store, options.storage);
  const heard = listeners();
  const mine = session(options, {
    onStatus: (status) => store.dispatch({ type: "status", status }),
    onOpen(account) {
      store.dispatch({ type: "me", me: account });
      kept.open(account);
      sending.flush();
    },
    onEvent(frame) {
      store.dispatch({ type: "event", frame });
      sync.heard(frame);
      heard.tell(frame);
    },
    catchUp: () => sync.catchUp(),
    onLost() {
      sync.halt();
      store.dispatch({ type: "typingEnded" });
    },
    onSignedOut() {
      sync.halt();
      sync.reset();
      typing.close();
      kept.close();
      store.dispatch({ type: "reset", status: "signed_out" });
    },
  });
  const plain = operationsOver(mine.call);
  const sync = synchronizer(store, plain, mine);
  const sending = outbox(store, plain, mine.canCall);
  const typing = typist(
    store,
    (chat_id, is_typing) => void plain.sendChatAction({ chat_id, is_typing }).catch(() => {}),
    mine.isConnected,
  );
  const api = operationsOver(async (name, input) => {
    const result = await mine.call(name, input);
    await consequences(store, sync, name, input, result);
    if (name === "signOut") mine.forget();
    return result;
  });
  const model: LiveModel = {
    get: store.get,
    watch: store.watch,
    openChat: sync.openChat,
    loadOlder: sync.loadOlder,
    loadMoreChats: sync.loadMoreChats,
    refreshAgents: sync.refreshAgents,
    ...commands(store, plain, mine),
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
  const own: Omit<Client, keyof Operations> = {
    model,
    get status() {
      return store.state.status;
    },
    get token() {
      return mine.token;
    },
    enter: mine.enter,
    connect: mine.connect,
    async leave() {
      await plain.signOut().catch(() => {});
      kept.clear();
      mine.forget();
    },
    close() {
      mine.close();
      sync.halt();
      typing.close();
    },
    on: heard.on,
  };
  return Object.setPrototypeOf(own, api) as Client;
}

/** What an answer means for the model where no event would tell. */
async function consequences(
  store: Store,
  sync: Sync,
  name: string,
  input: object,
  result: unknown,
): Promise<void> {
  switch (name) {
    case "startChat":
      return store.dispatch({ type: "snapshots", snapshots: [result as OutputOf<"startChat">] });
    case "leaveChat": {
      const { chat_id } = input as InputOf<"leaveChat">;
      return store.dispatch({ type: "chatGone", chatId: chat_id });
    }
    case "setAgentKey":
    case "removeAgentKey":
    case "setAgentProfile":
    case "setAgentLimits":
      return sync.refreshAgents().catch(() => {});
  }
}

type Listener = (frame: EventFrame) => void;

function listeners() {
  const all = new Map<EventName, Set<Listener>>();
  return {
    on<Name extends EventName>(name: Name, listener: (frame: EventFrame<Name>) => void) {
      const own: Listener = (frame) => listener(frame as EventFrame<Name>);
      const some = all.get(name) ?? new Set();
      all.set(name, some.add(own));
      return () => void some.delete(own);
    },
    tell(frame: EventFrame): void {
      for (const listener of [...(all.get(frame.method) ?? [])]) listener(frame);
    },
  };
}
