import type { Account, EventFrame, InputOf, OutputOf } from "@parley/protocol";
import { untilAborted } from "./async/abort.ts";
import { callListener } from "./async/call-listener.ts";
import { Presences } from "./catch-up/presence.ts";
import { EventListeners } from "./connection/event-listeners.ts";
import { createOperations } from "./connection/operations.ts";
import { Transport } from "./connection/transport.ts";
import { MessageReader } from "./each-message/reader.ts";
import { confirmationOf } from "./errors.ts";
import { resolveLink } from "./files/address.ts";
import { Links } from "./files/links.ts";
import { Profiles } from "./files/profiles.ts";
import { createTransfer } from "./files/transfer.ts";
import { Uploader } from "./files/uploader.ts";
import { createStore, type Store } from "./model/store.ts";
import { ModelRuntime } from "./model-runtime.ts";
import { StateCache } from "./storage/cache.ts";
import { UnsentStorage } from "./storage/unsent.ts";
import type {
  Client,
  ClientOptions,
  EachOptions,
  MessageListener,
  Operations,
  Status,
} from "./types.ts";

/** How long signing out waits for the service. */
const SIGN_OUT_TIMEOUT_MS = 3000;

/** Creates a client of the service: its operations, its events, and a live model of what a person sees. */
export function createClient(options: ClientOptions = {}): Client {
  const runtime = new ClientRuntime(options);
  const { transport, store } = runtime;
  const methods: Omit<Client, keyof Operations> = {
    model: runtime.modelRuntime.model,
    links: runtime.links,
    profiles: runtime.profiles,
    presence: runtime.presence,
    get status() {
      return store.state.status;
    },
    get token() {
      return transport.token;
    },
    get unsentCount() {
      return runtime.countUnsent();
    },
    enter: (how, input) => transport.enter(how, input),
    connect: () => transport.connect(),
    reconnect: () => transport.retryNow(),
    leave: () => runtime.leave(),
    close: () => runtime.close(),
    upload: (chatId, blob, upload) => runtime.uploader.upload(chatId, blob, upload),
    uploadPicture: (blob, upload) => runtime.uploader.upload(null, blob, upload),
    on: (name, listener) => runtime.listeners.add(name, listener),
    eachMessage: (listener, each) => runtime.addReader(listener, each),
  };
  // Operations come from a proxy, so that their names need not be listed.
  return Object.setPrototypeOf(methods, runtime.createApi()) as Client;
}

/** The parts of a client, and what happens between them. */
class ClientRuntime {
  readonly store: Store;
  readonly transport: Transport;
  readonly modelRuntime: ModelRuntime;
  readonly links: Links;
  readonly profiles: Profiles;
  readonly presence: Presences;
  readonly uploader: Uploader;
  readonly listeners = new EventListeners();
  readonly #options: ClientOptions;
  readonly #operations: Operations;
  readonly #cache: StateCache;
  readonly #unsent: UnsentStorage;
  readonly #readers = new Set<MessageReader>();

  constructor(options: ClientOptions) {
    const hasToken = options.token !== undefined || options.getToken !== undefined;
    this.#options = options;
    this.store = createStore(hasToken ? "offline" : "signed_out");
    const onError = (error: Error) => callListener(() => options.onError?.(error));
    this.#unsent = new UnsentStorage(this.store, {
      ...options,
      onTakenOver: () => this.modelRuntime.flush(),
      makeRoom: () => this.#cache.clear(),
      onError,
    });
    this.#cache = new StateCache(this.store, options.storage, () => this.transport.token);
    this.transport = new Transport(options, {
      onStatus: (status) => this.store.dispatch({ type: "status", status }),
      onOpen: (account, historyId) => this.#handleOpen(account, historyId),
      onEvent: (frame) => this.#handleEvent(frame),
      catchUp: () => this.modelRuntime.catchUp.catchUp(),
      onLost: () => this.#halt(),
      onToken: () => this.modelRuntime.flush(),
      onSignedOut: () => this.#forget("signed_out"),
    });
    this.#operations = createOperations((name, input) => this.transport.call(name, input));
    const { transport } = this;
    const { timeoutMs } = transport;
    const resolve = (link: string) => resolveLink(transport.url, link);
    const shared = { api: this.#operations, reachability: transport, resolve };
    this.links = new Links(shared);
    const versionOf = (username: string) => this.store.state.accounts[username]?.version ?? 0;
    this.profiles = new Profiles({ ...shared, versionOf });
    this.store.onChange((state, before) => {
      if (state.accounts !== before.accounts) this.profiles.refresh();
    });
    this.presence = new Presences(this.#operations, transport);
    this.uploader = new Uploader({
      ...shared,
      transfer: createTransfer(options.fetch),
      timeoutMs,
    });
    if (options.token !== undefined) this.#cache.restore(options.token);
    if (this.store.state.me) this.#unsent.open(this.store.state.me);
    this.modelRuntime = new ModelRuntime({
      store: this.store,
      api: this.#operations,
      connectivity: transport,
      uploader: this.uploader,
      blobs: options.blobs,
      onError,
    });
  }

  /** The operations that the caller gets: they also update the model where no event would. */
  createApi(): Operations {
    return createOperations(async (name, input) => {
      const result = await this.#callConfirmed(name, input);
      await this.#applyResult(name, input, result);
      return result;
    });
  }

  /** Makes a call, again once the person has confirmed who they are if it needs that. */
  async #callConfirmed(name: string, input: object): Promise<unknown> {
    try {
      return await this.transport.call(name, input);
    } catch (error) {
      const by = confirmationOf(error);
      if (by === undefined || !(await this.#options.confirm?.(by))) throw error;
      return this.transport.call(name, input);
    }
  }

  /** Returns a function that stops the reader. */
  addReader(listener: MessageListener, each: EachOptions = {}): () => void {
    const { storage } = this.#options;
    const options = { ...(storage && { storage }), ...each };
    const reader = new MessageReader(this.#operations, listener, options);
    this.#readers.add(reader);
    const { me } = this.store.state;
    if (this.transport.isConnected() && me) reader.start(me.username);
    return () => {
      this.#readers.delete(reader);
      reader.halt();
    };
  }

  countUnsent(): number {
    return this.#unsent.count();
  }

  async leave(): Promise<void> {
    const timeout = AbortSignal.timeout(SIGN_OUT_TIMEOUT_MS);
    // If the call fails, the client forgets the session anyway. The server's session expires.
    await untilAborted(this.#operations.signOut(), timeout).catch(() => {});
    this.#forgetAccount();
  }

  close(): void {
    this.#cache.save();
    this.transport.close();
    this.#unsent.releaseLocks();
    this.#halt();
  }

  #handleOpen(account: Account, historyId: string | undefined): void {
    const { me } = this.store.state;
    // A new token may belong to another account.
    if (me && me.username !== account.username) this.#forget(this.store.state.status);
    this.store.dispatch({ type: "me", me: account });
    if (historyId !== undefined) this.modelRuntime.catchUp.setHistory(historyId);
    this.#unsent.open(account);
    this.modelRuntime.flush();
    this.links.refresh();
    this.profiles.refresh();
    this.presence.handleOpen();
    for (const reader of this.#readers) reader.start(account.username);
  }

  #handleEvent(frame: EventFrame): void {
    this.store.dispatch({ type: "event", frame });
    this.modelRuntime.handleEvent(frame);
    this.presence.handleEvent(frame);
    this.listeners.notify(frame);
    for (const reader of this.#readers) reader.handleEvent(frame);
  }

  #halt(): void {
    this.modelRuntime.halt();
    this.presence.clear();
    for (const reader of this.#readers) reader.halt();
  }

  /** Forgets the account's state. Unsent messages stay in the storage. */
  #forget(status: Status): void {
    this.#cache.clear();
    this.#unsent.close();
    this.links.clear();
    this.profiles.clear();
    this.presence.clear();
    this.modelRuntime.reset(status);
  }

  async #applyResult(name: string, input: object, result: unknown): Promise<void> {
    switch (name) {
      case "startChat": {
        const snapshots = [result as OutputOf<"startChat">];
        return this.store.dispatch({ type: "snapshots", snapshots });
      }
      case "leaveChat": {
        const { chat_id: chatId } = input as InputOf<"leaveChat">;
        this.store.dispatch({ type: "chatRemoved", chatId });
        return this.modelRuntime.discardUnsent(chatId);
      }
      case "createAgent":
      case "updateAgent":
      case "deleteAgent":
      case "setAgentKey":
      case "removeAgentKey":
      case "setAgentProfile":
      case "setAgentLimits":
        // The operation has succeeded. If this fails, the next connection fetches the agents.
        return this.modelRuntime.catchUp.refreshAgents().catch(() => {});
      case "signOut":
        return this.transport.forget();
      case "deleteMe":
        return this.#forgetAccount();
    }
  }

  /** Forgets the session and everything that is stored of the account. */
  #forgetAccount(): void {
    this.#unsent.clear();
    this.transport.forget();
  }
}
