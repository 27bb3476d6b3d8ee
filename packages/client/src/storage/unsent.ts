import type { Account } from "@parley/protocol";
import { createQueues } from "../async/queues.ts";
import { hasTabLocks } from "../async/tab-lock.ts";
import { blobKey, withoutRuntimeFields } from "../files/local-file.ts";
import type { OptimisticChange, State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import { setEntry } from "../model/structural-sharing.ts";
import { createUnsentMessage } from "../send/unsent-message.ts";
import type { BlobStorage, KeyValueStorage, LocalFile, LocalMessage } from "../types.ts";
import { onStorageChange } from "./page-events.ts";
import { UnsentLocks } from "./unsent-locks.ts";

interface StoredMessage {
  id: string;
  chat_id: string;
  content: string;
  reply_to_id: string | null;
  created_at: string;
  failure?: string;
  refusal?: LocalMessage["refusal"];
  isRejected?: boolean;
  /** Their bytes are in the `blobs` of the client. Missing for messages without files. */
  files?: LocalFile[];
}

interface StoredChange {
  /** The `changeId`. */
  id: string;
  chat_id: string;
  change: OptimisticChange;
}

type Stored = StoredMessage | StoredChange;
type List = "outbox" | "changes";
type Drafts = State["drafts"];

const LISTS: readonly List[] = ["outbox", "changes"];

const NOT_STORED = "what you have not sent cannot be stored, and is lost when you close this page";

interface UnsentStorageOptions {
  storage?: KeyValueStorage | undefined;
  blobs?: BlobStorage | undefined;
  /** Called after the messages of a closed tab were queued here. */
  onTakenOver(): void;
  /** Deletes from the storage what can be fetched again. */
  makeRoom(): void;
  onError(error: Error): void;
}

/**
 * Stores unsent messages, changes of messages and drafts of the signed-in account. Several tabs may
 * share the storage: each tab locks what it sends, and takes over from tabs that were closed.
 */
export class UnsentStorage {
  readonly #store: Store;
  readonly #storage: KeyValueStorage | undefined;
  readonly #blobs: BlobStorage | undefined;
  /** The account that was opened last. It stays known when its session is over, for `clear`. */
  #me: Account | null = null;
  #isOpen = false;
  /** The drafts as another tab has changed them. They are not stored again: it may be further already. */
  #takenDrafts: Drafts = {};
  readonly #options: UnsentStorageOptions;
  #isWriteFailing = false;
  readonly #inOrder = createQueues();
  readonly #locks = new UnsentLocks();

  constructor(store: Store, options: UnsentStorageOptions) {
    const { storage, blobs } = options;
    this.#store = store;
    this.#options = options;
    this.#storage = storage;
    this.#blobs = blobs;
    store.onChange((state, before) => this.#save(state, before));
    if (storage) onStorageChange(storage, (...change) => this.#takeStored(...change));
  }

  /**
   * Restores what the account left unsent, and stores its changes from now on. For an account that is
   * open already, takes over what closed tabs have left unsent since.
   */
  open(account: Account): void {
    if (this.#isOpen && this.#me?.username === account.username) {
      this.#takeOver();
      return;
    }
    this.#me = account;
    this.#isOpen = true;
    for (const stored of this.#allUnknown()) this.#queue(stored, account);
    const drafts = { ...this.#read<Drafts>("drafts", {}), ...this.#store.state.drafts };
    this.#store.dispatch({ type: "drafts", drafts });
  }

  /** Stops storing changes, and leaves what is stored. */
  close(): void {
    this.#isOpen = false;
    this.releaseLocks();
  }

  /** Lets other tabs send the messages of this one, which does not send any more. */
  releaseLocks(): void {
    this.#locks.releaseAll();
  }

  /** How many messages are unsent, in all tabs. */
  count(): number {
    return unsentIn(this.#store.state).length + this.#unknown("outbox").length;
  }

  /** Deletes what is stored of the account, also after `close`. */
  clear(): void {
    if (!this.#me) return;
    for (const { id, files = [] } of this.#read<StoredMessage[]>("outbox", [])) {
      // Nothing else can be done about bytes that cannot be deleted.
      for (const index of files.keys()) this.#blobs?.delete(blobKey(id, index)).catch(() => {});
    }
    for (const list of LISTS) this.#storage?.removeItem(this.#key(list));
    this.#storage?.removeItem(this.#key("drafts"));
    this.#me = null;
    this.close();
  }

  /** The stored entries that this tab does not have. */
  #unknown(list: List): Stored[] {
    const known = new Set(entriesOf(list, this.#store.state).map(({ id }) => id));
    return this.#read<Stored[]>(list, []).filter(({ id }) => !known.has(id));
  }

  #allUnknown(): Stored[] {
    return LISTS.flatMap((list) => this.#unknown(list));
  }

  #queue(stored: Stored, me: Account): void {
    this.#store.dispatch(
      "change" in stored
        ? { type: "changeStarted", chatId: stored.chat_id, change: stored.change }
        : { type: "queued", message: restoreMessage(stored, me) },
    );
  }

  /** Queues what other tabs have not sent, in order per conversation, once the tabs are closed. */
  #takeOver(): void {
    for (const { id, chat_id: chatId } of this.#allUnknown()) {
      if (this.#locks.has(id)) continue;
      const acquired = this.#locks.acquire(id);
      void this.#inOrder(chatId, async () => {
        await acquired;
        if (!this.#locks.has(id)) return;
        const stored = this.#allUnknown().find((each) => each.id === id);
        if (!stored || !this.#me) return this.#locks.release(id);
        this.#queue(stored, this.#me);
        this.#options.onTakenOver();
      });
    }
  }

  /** Takes over what another tab has stored. */
  #takeStored(key: string, before: string | null, after: string | null): void {
    if (!this.#isOpen) return;
    if (key === this.#key("drafts")) this.#takeDrafts(before, after);
    const list = LISTS.find((each) => key === this.#key(each));
    if (!list) return;
    this.#dropSent(list, before, after);
    // Without locks it is not known whether the other tab sends them: the next connection takes over.
    if (hasTabLocks()) this.#takeOver();
  }

  /** Takes the drafts of another tab, except those that this tab has changed since. */
  #takeDrafts(before: string | null, after: string | null): void {
    const [old, next] = [before, after].map((json) => parse<Drafts>(() => json, {}));
    let { drafts } = this.#store.state;
    for (const id of Object.keys({ ...old, ...next })) {
      if (drafts[id] === old?.[id]) drafts = setEntry(drafts, id, next?.[id]);
    }
    this.#takenDrafts = drafts;
    this.#store.dispatch({ type: "drafts", drafts });
  }

  /** Drops what another tab has sent or discarded. */
  #dropSent(list: List, before: string | null, after: string | null): void {
    const [was, kept] = [before, after].map((json) => idsOf(parse<Stored[]>(() => json, [])));
    for (const id of was ?? []) {
      if (kept?.has(id)) continue;
      this.#locks.release(id);
      const known = entriesOf(list, this.#store.state).find((each) => each.id === id);
      if (!known) continue;
      const chatId = known.chat_id;
      this.#store.dispatch(
        list === "changes"
          ? { type: "changeEnded", chatId, changeId: id }
          : { type: "dropped", chatId, clientMsgId: id },
      );
    }
  }

  #save(state: State, before: State): void {
    if (!this.#isOpen || !this.#storage) return;
    if (state.outbox !== before.outbox) this.#saveList("outbox", state, before);
    if (state.optimisticChanges !== before.optimisticChanges) {
      this.#saveList("changes", state, before);
    }
    if (state.drafts !== before.drafts && state.drafts !== this.#takenDrafts) {
      const drafts = this.#read<Drafts>("drafts", {});
      this.#write("drafts", { ...drafts, ...changedDrafts(state, before) });
    }
  }

  #saveList(list: List, state: State, stateBefore: State): void {
    const [entries, before] = [entriesOf(list, state), entriesOf(list, stateBefore)];
    const ids = idsOf(entries);
    for (const id of ids) if (!this.#locks.has(id)) void this.#locks.acquire(id);
    for (const { id } of before) if (!ids.has(id)) this.#locks.release(id);
    // Only what is not stored has changed, such as the progress of uploads.
    if (JSON.stringify(entries) === JSON.stringify(before)) return;
    const known = idsOf(before);
    const isKept = ({ id }: Stored) => ids.has(id) || !known.has(id);
    const kept = this.#read<Stored[]>(list, []).filter(isKept);
    this.#write(list, replaceEntries(kept, entries));
  }

  #key(what: List | "drafts"): string {
    return `parley:${what}:${this.#me?.username ?? ""}`;
  }

  #read<Value>(what: List | "drafts", fallback: Value): Value {
    return parse(() => this.#storage?.getItem(this.#key(what)), fallback);
  }

  /** If the storage is full or forbidden, the entries do not survive a reload. */
  #write(what: List | "drafts", value: object): void {
    try {
      if (Object.keys(value).length === 0) this.#storage?.removeItem(this.#key(what));
      else this.#setItem(this.#key(what), JSON.stringify(value));
    } catch (cause) {
      // Once, not for every keystroke.
      if (!this.#isWriteFailing) this.#options.onError(new Error(NOT_STORED, { cause }));
      this.#isWriteFailing = true;
    }
  }

  #setItem(key: string, value: string): void {
    try {
      this.#storage?.setItem(key, value);
    } catch {
      // The storage is probably full.
      this.#options.makeRoom();
      this.#storage?.setItem(key, value);
    }
    this.#isWriteFailing = false;
  }
}

/** What is stored as JSON; the fallback if it is missing or cannot be read. */
function parse<Value>(read: () => string | null | undefined, fallback: Value): Value {
  try {
    return JSON.parse(read() ?? "null") ?? fallback;
  } catch {
    // Damaged, or the storage is blocked.
    return fallback;
  }
}

const unsentIn = ({ outbox }: State): LocalMessage[] =>
  Object.values(outbox)
    .flat()
    .filter(({ delivery }) => delivery !== "sent");

const entriesOf = (list: List, state: State): Stored[] =>
  list === "outbox" ? unsentIn(state).map(toStored) : changesIn(state);

const changesIn = ({ optimisticChanges }: State): StoredChange[] =>
  Object.entries(optimisticChanges).flatMap(([chat_id, changes]) =>
    changes.map((change) => ({ id: change.changeId, chat_id, change })),
  );

/**
 * The stored list with the entries of this tab. Those of other tabs keep their places among those of
 * the same conversation, so that every tab restores them in the order in which they were written.
 */
function replaceEntries(stored: readonly Stored[], entries: readonly Stored[]): Stored[] {
  const ids = idsOf(entries);
  const left = [...entries];
  const replaced = stored.map((each) => {
    if (!ids.has(each.id)) return each;
    const next = left.findIndex(({ chat_id }) => chat_id === each.chat_id);
    return left.splice(next, 1)[0] ?? each;
  });
  return [...replaced, ...left];
}

const idsOf = (entries: readonly Stored[]): Set<string> => new Set(entries.map(({ id }) => id));

const toStored = (message: LocalMessage): StoredMessage => ({
  id: message.id,
  chat_id: message.conversation_id,
  content: message.content,
  reply_to_id: message.reply_to_id,
  created_at: message.created_at,
  ...(message.failure !== undefined && { failure: message.failure }),
  ...(message.refusal && { refusal: message.refusal }),
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
    refusal: stored.refusal,
    isRejected: stored.isRejected,
  });

/** The drafts that changed. A deleted one is undefined, which JSON leaves out. */
function changedDrafts(state: State, before: State): Record<string, string | undefined> {
  const ids = new Set([...Object.keys(state.drafts), ...Object.keys(before.drafts)]);
  const changed = [...ids].filter((id) => state.drafts[id] !== before.drafts[id]);
  return Object.fromEntries(changed.map((id) => [id, state.drafts[id]]));
}
