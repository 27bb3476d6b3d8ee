import type { Account } from "@parley/protocol";
import { blobKey, withoutRuntimeFields } from "../files/local-file.ts";
import type { State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import { onStorageChange } from "../page-events.ts";
import { createUnsentMessage } from "../send/unsent-message.ts";
import type { BlobStorage, KeyValueStorage, LocalFile, LocalMessage } from "../types.ts";

interface StoredMessage {
  id: string;
  chat_id: string;
  content: string;
  reply_to_id: string | null;
  created_at: string;
  failure?: string;
  isRejected?: boolean;
  /** Their bytes are in the `blobs` of the client. Missing for messages without files. */
  files?: LocalFile[];
}

type Drafts = State["drafts"];

/** Stores unsent messages and drafts of the signed-in account. Several tabs may share the storage. */
export class UnsentStorage {
  readonly #store: Store;
  readonly #storage: KeyValueStorage | undefined;
  readonly #blobs: BlobStorage | undefined;
  /** The account that was opened last. It stays known when its session is over, for `clear`. */
  #me: Account | null = null;
  #isOpen = false;

  constructor(
    store: Store,
    { storage, blobs }: { storage?: KeyValueStorage; blobs?: BlobStorage },
  ) {
    this.#store = store;
    this.#storage = storage;
    this.#blobs = blobs;
    store.onChange((state, before) => this.#save(state, before));
    if (storage) onStorageChange(storage, (...change) => this.#follow(...change));
  }

  /** Restores what the account left unsent, and stores its changes from now on. */
  open(account: Account): void {
    if (this.#isOpen && this.#me?.username === account.username) return;
    this.#me = account;
    this.#isOpen = true;
    const known = new Set(unsentIn(this.#store.state).map(({ id }) => id));
    for (const stored of this.#read<StoredMessage[]>("outbox", [])) {
      if (known.has(stored.id)) continue;
      this.#store.dispatch({ type: "queued", message: restoreMessage(stored, account) });
    }
    const drafts = { ...this.#read<Drafts>("drafts", {}), ...this.#store.state.drafts };
    this.#store.dispatch({ type: "drafts", drafts });
  }

  /** Stops storing changes, and leaves what is stored. */
  close(): void {
    this.#isOpen = false;
  }

  /** Deletes what is stored of the account, also after `close`. */
  clear(): void {
    if (!this.#me) return;
    for (const { id, files = [] } of this.#read<StoredMessage[]>("outbox", [])) {
      // Nothing else can be done about bytes that cannot be deleted.
      for (const index of files.keys()) this.#blobs?.delete(blobKey(id, index)).catch(() => {});
    }
    this.#storage?.removeItem(this.#key("outbox"));
    this.#storage?.removeItem(this.#key("drafts"));
    this.#me = null;
    this.#isOpen = false;
  }

  /** Drops the messages that another tab has sent or discarded. */
  #follow(key: string, before: string | null, after: string | null): void {
    if (!this.#isOpen || key !== this.#key("outbox")) return;
    const kept = new Set(parse<StoredMessage[]>(() => after, []).map(({ id }) => id));
    for (const { id, chat_id: chatId } of parse<StoredMessage[]>(() => before, [])) {
      if (kept.has(id)) continue;
      const isUnsent = unsentIn(this.#store.state).some((message) => message.id === id);
      if (isUnsent) this.#store.dispatch({ type: "dropped", chatId, clientMsgId: id });
    }
  }

  #save(state: State, before: State): void {
    if (!this.#isOpen || !this.#storage) return;
    if (state.outbox !== before.outbox) this.#saveOutbox(unsentIn(state), unsentIn(before));
    if (state.drafts !== before.drafts) {
      const drafts = this.#read<Drafts>("drafts", {});
      this.#write("drafts", { ...drafts, ...changedDrafts(state, before) });
    }
  }

  #saveOutbox(unsent: readonly LocalMessage[], before: readonly LocalMessage[]): void {
    if (isStoredSame(unsent, before)) return;
    const replaced = new Set([...before, ...unsent].map(({ id }) => id));
    // Entries of other tabs stay.
    const others = this.#read<StoredMessage[]>("outbox", []).filter(({ id }) => !replaced.has(id));
    this.#write("outbox", [...others, ...unsent.map(toStored)]);
  }

  #key(what: "outbox" | "drafts"): string {
    return `parley:${what}:${this.#me?.username ?? ""}`;
  }

  #read<Value>(what: "outbox" | "drafts", fallback: Value): Value {
    return parse(() => this.#storage?.getItem(this.#key(what)), fallback);
  }

  /** Returns false if the storage is full or forbidden: the entries then do not survive a reload. */
  #write(what: "outbox" | "drafts", value: object): boolean {
    try {
      if (Object.keys(value).length === 0) this.#storage?.removeItem(this.#key(what));
      else this.#storage?.setItem(this.#key(what), JSON.stringify(value));
      return true;
    } catch {
      return false;
    }
  }
}

/** What is stored as JSON; the fallback if it is missing or cannot be read. */
function parse<Value>(read: () => string | null | undefined, fallback: Value): Value {
  try {
    return JSON.parse(read() ?? "null") ?? fallback;
  } catch {
    return fallback;
  }
}

const unsentIn = ({ outbox }: State): LocalMessage[] =>
  Object.values(outbox)
    .flat()
    .filter(({ delivery }) => delivery !== "sent");

/** Whether only what is not stored has changed, such as the progress of uploads. */
const isStoredSame = (one: readonly LocalMessage[], other: readonly LocalMessage[]): boolean =>
  one.length === other.length &&
  one.every((message, index) => {
    const before = other[index];
    return (
      message === before ||
      JSON.stringify(toStored(message)) === JSON.stringify(before && toStored(before))
    );
  });

const toStored = (message: LocalMessage): StoredMessage => ({
  id: message.id,
  chat_id: message.conversation_id,
  content: message.content,
  reply_to_id: message.reply_to_id,
  created_at: message.created_at,
  ...(message.failure !== undefined && { failure: message.failure }),
  ...(message.isRejected && { isRejected: true }),
  ...(message.files.length > 0 && { files: message.files.map(withoutRuntimeFields) }),
});

const restoreMessage = (stored: StoredMessage, sender: Account): LocalMessage =>
  createUnsentMessage({
    id: stored.id,
    chatId: stored.chat_id,
    content: stored.content,
    replyTo: stored.reply_to_id ?? undefined,
    sender,
    files: stored.files ?? [],
    createdAt: stored.created_at,
    failure: stored.failure,
    isRejected: stored.isRejected,
  });

/** The drafts that changed. A deleted one is undefined, which JSON leaves out. */
function changedDrafts(state: State, before: State): Record<string, string | undefined> {
  const ids = new Set([...Object.keys(state.drafts), ...Object.keys(before.drafts)]);
  const changed = [...ids].filter((id) => state.drafts[id] !== before.drafts[id]);
  return Object.fromEntries(changed.map((id) => [id, state.drafts[id]]));
}
