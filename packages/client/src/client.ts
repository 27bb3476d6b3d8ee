import type { EventFrame, EventName, InputOf, OutputOf } from "@parley/protocol";
import { operationsOver } from "./connection/operations.ts";
import { session } from "./connection/session.ts";
import { type MessageReader, messageReader } from "./each-message/reader.ts";
import { liveModel, type ModelParts } from "./live-model.ts";
import { createStore, type Store } from "./model/store.ts";
import { cache } from "./storage/cache.ts";
import { keeper } from "./storage/unsent.ts";
import type { Sync } from "./sync/sync.ts";
import type { Client, ClientOptions, Operations, Status } from "./types.ts";

/** A client of the service: its operations, its events, and a live model of what its user sees. */
export function createClient(options: ClientOptions = {}): Client {
  const hasToken = options.token !== undefined || options.getToken !== undefined;
  const store = createStore(hasToken ? "offline" : "signed_out");
  const kept = keeper(store, options.storage);
  const heard = listeners();
  const readers = new Set<MessageReader>();
  const cached = cache(store, options.storage, () => mine.token);
  const mine = session(options, {
    onStatus: (status) => store.dispatch({ type: "status", status }),
    onOpen(account, historyId) {
      const { me } = store.state;
      // Another token may be another person's.
      if (me && me.username !== account.username) forget(store.state.status);
      store.dispatch({ type: "me", me: account });
      if (historyId !== undefined) parts.sync.inHistory(historyId);
      kept.open(account);
      parts.reachable();
      for (const reader of readers) reader.start(account.username);
    },
    onEvent(frame) {
      store.dispatch({ type: "event", frame });
      parts.heard(frame);
      heard.tell(frame);
      for (const reader of readers) reader.heard(frame);
    },
    catchUp: () => parts.sync.catchUp(),
    onLost: () => halt(),
    onToken: () => parts.reachable(),
    onSignedOut: () => forget("signed_out"),
  });
  function halt(): void {
    parts.halted();
    for (const reader of readers) reader.halt();
  }
  function forget(status: Status): void {
    cached.clear();
    parts.reset(status);
  }
  if (options.token !== undefined) cached.restore(options.token);
  if (store.state.me) kept.open(store.state.me);
  const plain = operationsOver(mine.call);
  const parts: ModelParts = liveModel(store, plain, mine, kept);
  const api = operationsOver(async (name, input) => {
    const result = await mine.call(name, input);
    await consequences(store, parts.sync, name, input, result);
    if (name === "signOut") mine.forget();
    return result;
  });
  const own: Omit<Client, keyof Operations> = {
    model: parts.model,
    get status() {
      return store.state.status;
    },
    get token() {
      return mine.token;
    },
    enter: mine.enter,
    connect: mine.connect,
    reconnect: mine.retryNow,
    async leave() {
      await plain.signOut().catch(() => {});
      kept.clear();
      mine.forget();
    },
    close() {
      cached.save();
      mine.close();
      halt();
    },
    on: heard.on,
    eachMessage(listener, each = {}) {
      const { storage } = options;
      const reader = messageReader(plain, listener, { ...(storage && { storage }), ...each });
      readers.add(reader);
      if (mine.isConnected() && store.state.me) reader.start(store.state.me.username);
      return () => {
        readers.delete(reader);
        reader.halt();
      };
    },
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
