import type { Message } from "@parley/protocol";
import { type Change, messageChanged } from "../../../src/changes/change.ts";
import { type AccountRecord, NOBODY } from "../../../src/rules/accounts.ts";
import type { NewAccount } from "../../../src/store/accounts.ts";
import type { Awaitable } from "../../../src/store/awaitable.ts";
import type { LogLimits } from "../../../src/store/changes.ts";
import type { ConversationRecord } from "../../../src/store/conversations.ts";
import type { MessageRecord, NewMessage } from "../../../src/store/message-records.ts";
import { isNonEmpty } from "../../../src/store/non-empty.ts";
import type { SearchQuery } from "../../../src/store/search.ts";
import type { ReadTx, Store, WriteTx } from "../../../src/store/store.ts";
import { searchPatiently } from "../search.ts";

/** A store for one test. */
export interface OpenedStore {
  readonly store: Store;
  /** Closes it and opens it again on the same data. */
  reopen(logLimits?: Partial<LogLimits>): Promise<Store>;
  /** The entries of the change log as they are stored. */
  storedEntries(): Promise<string[]>;
  /** Closes it and removes its data. */
  dispose(): Promise<void>;
}

/** Defines a test, which gets an empty store. */
export type Check = (sentence: string, run: (fixture: Fixture) => Promise<void>) => void;
export type Fixture = Awaited<ReturnType<typeof openFixture>>;
type SendOptions = Partial<Omit<NewMessage, "conversation" | "sender" | "content">>;

export const START = Date.UTC(2026, 10, 15);
export { NOBODY };

export async function openFixture(open: () => Promise<OpenedStore>) {
  const opened = await open();
  const { store } = opened;
  const changes: Change[] = [];
  let arrived = Promise.withResolvers<void>();
  store.onCommit((committed) => {
    changes.push(...committed);
    arrived.resolve();
    arrived = Promise.withResolvers();
  });

  return {
    store,
    /** All changes that units have emitted, in commit order. */
    changes,
    reopen: opened.reopen,
    storedEntries: opened.storedEntries,
    [Symbol.asyncDispose]: opened.dispose,
    /** Resolves once the marker of `emitMarker` has been received, and so everything before it. */
    received: async (marker: string) => {
      while (!changes.some((one) => one.kind === "session_ended" && one.session_id === marker)) {
        await arrived.promise;
      }
    },
    people: <Names extends string[]>(...names: Names) =>
      store.write((tx) =>
        inSequence(names, (username) => newAccount(tx, { username })),
      ) as Promise<{
        [Place in keyof Names]: AccountRecord;
      }>,
    group: (...members: AccountRecord[]) => store.write((tx) => newGroup(tx, members)),
    /** Runs a unit that owns the conversation. */
    writeIn: <Result>(chat: Chat, unit: (tx: WriteTx) => Awaitable<Result>) =>
      store.write(async (tx) => {
        await conversationOf(tx, chat);
        return unit(tx);
      }),
    send: (chat: Chat, sender: AccountRecord, content: string, options?: SendOptions) =>
      store.write((tx) => send(tx, chat, sender, content, options)),
    edit: (message: Message, content: string, mentions: string[] = []) =>
      store.write(async (tx) =>
        tx.editMessage(await recordOf(tx, message), content, mentions, START),
      ),
    remove: (...removed: Message[]) => store.write((tx) => remove(tx, removed)),
    hide: (viewer: AccountRecord, ...hidden: Pick<Message, "id">[]) =>
      store.write(async (tx) => tx.hideMessages(await recordsOf(tx, hidden), viewer.id)),
    view: (chat: Chat, viewer: AccountRecord) =>
      store.read((tx) => tx.conversationView(chat.id, viewer.id)),
    texts: (chat: Chat, viewer: AccountRecord) =>
      store.read(async (tx) =>
        (await wholeHistory(tx, chat, viewer)).map(({ content }) => content),
      ),
    find: async (viewer: AccountRecord, words: string[], rest: Partial<SearchQuery> = {}) => {
      const hits = await searchPatiently(store, {
        words,
        viewerId: viewer.id,
        limit: 100,
        ...rest,
      });
      const uuids = hits.map(({ uuid }) => uuid);
      return store.read(async (tx) =>
        (await tx.messageViews(uuids, viewer.id)).map(({ content }) => content),
      );
    },
  };
}

export interface Chat {
  id: number;
  uuid: string;
}

/** Runs asynchronous work for one item after another: a unit makes its calls in sequence. */
export async function inSequence<Item, Result>(
  items: readonly Item[],
  work: (item: Item, place: number) => Promise<Result> | Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [place, item] of items.entries()) results.push(await work(item, place));
  return results;
}

/** Yields to the event loop. */
export const nextTick = () => new Promise<void>((resolve) => setImmediate(resolve));

export const times = (count: number) => Array.from({ length: count }, (_, place) => place);

export async function newAccount(
  tx: WriteTx,
  account: Partial<NewAccount> & { username: string },
): Promise<AccountRecord> {
  const { username } = account;
  const made = await tx.insertAccount({
    kind: "human",
    display_name: username,
    at: START,
    ...account,
  });
  if (!made) throw new Error(`${username} is taken`);
  return made;
}

export const newAgent = (tx: WriteTx, owner: AccountRecord, provider: string) =>
  newAccount(tx, {
    username: `${owner.username}:${provider}`,
    kind: "agent",
    owner_id: owner.id,
    provider,
  });

export async function newGroup(
  tx: WriteTx,
  members: readonly AccountRecord[],
  { title = null as string | null, at = START } = {},
): Promise<Chat> {
  const uuid = Bun.randomUUIDv7();
  const [creator] = members as [AccountRecord];
  const id = await tx.insertConversation({
    uuid,
    kind: "group",
    title,
    created_by: creator.id,
    at,
  });
  await tx.insertMembers(
    id,
    members.map((member) => member.id),
    at,
  );
  return { id, uuid };
}

export async function conversationOf(tx: ReadTx, { uuid }: Chat): Promise<ConversationRecord> {
  const found = await tx.conversation(uuid, NOBODY);
  if (!found) throw new Error("the conversation is missing");
  return found;
}

/** Inserts a message and emits its event, as the service does. */
export async function send(
  tx: WriteTx,
  chat: Chat,
  sender: AccountRecord,
  content: string,
  options: SendOptions = {},
): Promise<Message> {
  const message = await trySend(tx, chat, sender, content, options);
  if (!message) throw new Error("the message was not inserted");
  return message;
}

/** Asks an agent in a new group, and queues its turn. */
export async function askAgent(
  tx: WriteTx,
  asker: AccountRecord,
  agent: AccountRecord,
  refusal: string | null = null,
) {
  const chat = await newGroup(tx, [asker, agent]);
  const asked = await send(tx, chat, asker, "question");
  await tx.queueTurn({
    agent_id: agent.id,
    conversation_id: chat.id,
    trigger_uuid: asked.id,
    open_ended: true,
    refusal,
    most_waiting: 1,
    at: START,
  });
  const [turn] = await tx.openTurns(chat.id);
  return { asked, turn_id: turn?.id ?? 0 };
}

export async function trySend(
  tx: WriteTx,
  chat: Chat,
  sender: AccountRecord,
  content: string,
  options: SendOptions = {},
): Promise<Message | null> {
  const conversation = await conversationOf(tx, chat);
  const message = await tx.insertMessage({
    conversation,
    sender,
    content,
    client_msg_id: null,
    reply_to_id: null,
    mentions: [],
    at: START,
    ...options,
  });
  if (message) {
    tx.emit(messageChanged("events.messageNew", message, message.seq));
  }
  return message;
}

export async function recordOf(tx: ReadTx, { id }: Pick<Message, "id">): Promise<MessageRecord> {
  const found = await tx.message(id);
  if (!found) throw new Error("the message is missing");
  return found;
}

export async function remove(tx: WriteTx, messages: readonly Pick<Message, "id">[]) {
  const records = await recordsOf(tx, messages);
  if (!isNonEmpty(records)) throw new Error("there is nothing to remove");
  return tx.deleteMessages(records, START);
}

export const recordsOf = (tx: ReadTx, wanted: readonly Pick<Message, "id">[]) =>
  inSequence(wanted, (message) => recordOf(tx, message));

export async function wholeHistory(
  tx: ReadTx,
  chat: Chat,
  viewer: AccountRecord,
): Promise<Message[]> {
  const query = { conversationId: chat.id, viewerId: viewer.id, limit: 10_000 };
  return (await tx.messagePage(query)).items;
}

/** The counter values of the events of a conversation. */
export const seqsReceived = (changes: readonly Change[], { uuid }: Chat) =>
  changes.flatMap((one) =>
    one.kind === "event" && one.at?.conversation_id === uuid ? [one.at.seq] : [],
  );

/** Emits a change that tests recognise. */
export const emitMarker = (tx: WriteTx, marker: string) =>
  tx.emit({ kind: "session_ended", session_id: marker });
export const failed = (work: Promise<unknown>) => work.then(() => false).catch(() => true);
/** Makes the unit that calls it fail. */
export const failUnit = () => {
  throw new Error("the unit fails");
};

/** The n-th item of a list that wraps around. */
export const at = <Item>(list: readonly Item[], n: number): Item => list[n % list.length] as Item;
