import { type InputOf, type Message, operations } from "@parley/protocol";
import { z } from "zod";
import { counted, durable, messageChanged } from "../changes/change.ts";
import { joinedConversation, visibleMessage } from "../domain/access.ts";
import { mentionsIn } from "../domain/mentions.ts";
import { cursorOf, pageOf, pageSize } from "../domain/pagination.ts";
import { dropTurnsOf, queueTurns, stopTurns } from "../domain/turns.ts";
import { bind } from "../operation.ts";
import { forbidden, notFound } from "../rules/failure.ts";
import { mayDelete } from "../rules/permissions.ts";
import { searchWords, snippet } from "../rules/search.ts";
import type { Caller } from "../security/caller.ts";
import { NOBODY } from "../store/accounts.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { HistoryQuery, MessageRecord } from "../store/messages.ts";
import type { ReadTx } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";

const searchCursor = cursorOf(z.int());
/** Beyond every place in a conversation. */
const LATEST = Number.MAX_SAFE_INTEGER;
/** A page of messages spans any number of changes of the group; this bounds what it returns of them. */
const CHANGES_PER_PAGE = 500;

const sendMessage = bind(operations.sendMessage, ({ store, caller }, input) =>
  store.write(async (tx) => {
    const conversation = await joinedConversation(tx, input.chat_id, caller);
    const { content, client_msg_id = null, reply_to_id = null } = input;
    if (reply_to_id !== null) await checkReply(tx, reply_to_id, conversation, caller);
    const message = await tx.insertMessage({
      conversation,
      sender: caller.account,
      content,
      client_msg_id,
      reply_to_id,
      mentions: await mentionsIn(tx, content, conversation.id),
      at: Date.now(),
    });
    if (!message) return firstSent(tx, conversation, input.client_msg_id, caller);
    tx.emit(messageChanged("events.messageNew", message, message.seq));
    await queueTurns(tx, conversation, message, caller.account);
    return message;
  }),
);

const getChatHistory = bind(operations.getChatHistory, ({ store, caller, config }, input) =>
  store.read(async (tx) => {
    const { id: conversationId } = await joinedConversation(tx, input.chat_id, caller);
    const viewerId = caller.account.id;
    const limit = pageSize(input.limit, config.limits);
    const anchor = input.before ?? input.after ?? input.around;
    const page = (from: HistoryQuery["from"], most: number) =>
      tx.history({ conversationId, viewerId, from, limit: most });
    const changes = (after: number, before: number) =>
      tx.conversationChanges({ conversationId, after, before, limit: CHANGES_PER_PAGE });
    const older = async (before: number, most: number) => {
      const { items, has_more } = await page({ seq: before, direction: "older" }, most);
      return { items, has_more, from: has_more ? (items[0]?.seq ?? 0) : 0 };
    };
    const newer = async (after: number, most: number) => {
      const { items, has_more } = await page({ seq: after, direction: "newer" }, most);
      return { items, has_more, to: has_more ? (items.at(-1)?.seq ?? LATEST) : LATEST };
    };
    const seq = anchor === undefined ? LATEST : (await messageIn(tx, anchor, conversationId)).seq;
    if (input.after) {
      const { to, ...found } = await newer(seq, limit);
      return { ...found, changes: await changes(seq, to) };
    }
    if (!input.around) {
      const { from, ...found } = await older(seq, limit);
      return { ...found, changes: await changes(from, seq) };
    }
    const before = await older(seq, Math.floor(limit / 2));
    const after = await newer(seq - 1, limit - before.items.length);
    return {
      items: [...before.items, ...after.items],
      has_more: before.has_more || after.has_more,
      changes: await changes(before.from, after.to),
    };
  }),
);

const getMessage = bind(operations.getMessage, ({ store, caller }, { message_id }) =>
  store.read(async (tx) => {
    await visibleMessage(tx, message_id, caller);
    return oneView(tx, message_id, caller.account.id);
  }),
);

const editMessage = bind(operations.editMessage, ({ store, caller }, { message_id, content }) =>
  store.write(async (tx) => {
    const { message, conversation } = await visibleMessage(tx, message_id, caller);
    if (message.sender_id !== caller.account.id) {
      throw forbidden("only its sender may edit a message");
    }
    const mentions = await mentionsIn(tx, content, conversation.id);
    const seq = await tx.editMessage(message, content, mentions, Date.now());
    const shown = await oneView(tx, message_id, NOBODY);
    tx.emit(messageChanged("events.messageEdited", shown, seq));
    return oneView(tx, message_id, caller.account.id);
  }),
);

const deleteMessages = bind(operations.deleteMessages, ({ store, caller }, input) =>
  store.write(async (tx) => {
    const conversation = await joinedConversation(tx, input.chat_id, caller);
    const named = await messagesIn(tx, input.message_ids, conversation.id);
    if (!named.every((message) => mayDelete(caller.account, message, conversation))) {
      throw forbidden(
        "only its sender, its agent's owner or the group's admin may delete a message",
      );
    }
    for (const message of named) {
      if (!message.finalized) await stopTurns(tx, [await turnOf(tx, message)]);
    }
    const current = await messagesIn(tx, input.message_ids, conversation.id);
    const messages = current.filter((message) => !message.deleted);
    if (messages.length === 0) return;
    const seq = await tx.deleteMessages(messages, Date.now());
    const ids = messages.map(({ uuid }) => uuid);
    await dropTurnsOf(tx, conversation, ids);
    tx.emit(
      counted(
        "events.messageDeleted",
        { conversation_id: conversation.uuid, ids },
        conversation.uuid,
        seq,
      ),
    );
  }),
);

const deleteMessagesForMe = bind(operations.deleteMessagesForMe, ({ store, caller }, input) =>
  store.write(async (tx) => {
    const conversation = await joinedConversation(tx, input.chat_id, caller);
    const named = await messagesIn(tx, input.message_ids, conversation.id);
    const messages = named.filter((message) => !message.deleted);
    if (messages.length === 0) return;
    const own_seq = await tx.hideMessages(messages, caller.account.id);
    if (own_seq === null) return;
    const params = { conversation_id: conversation.uuid, ids: messages.map(({ uuid }) => uuid) };
    const users = [caller.account.username];
    tx.emit(durable({ method: "events.messageDeleted", params, own_seq }, { users }));
  }),
);

const getUpdates = bind(operations.getUpdates, ({ store, caller, config }, input) =>
  store.read(async (tx) => {
    const viewerId = caller.account.id;
    const history_id = await tx.historyId();
    if (input.chat_id === undefined) {
      return { ...(await changedSince(tx, viewerId, input)), history_id };
    }
    const { id: conversationId } = await joinedConversation(tx, input.chat_id, caller);
    const limit = pageSize(input.limit ?? config.limits.page_size, config.limits);
    const since = input.since_seq ?? 0;
    const updates = await tx.updates({ conversationId, viewerId, since, limit });
    const conversation = await tx.conversationView(conversationId, viewerId);
    const reads = await tx.readPositions(conversationId);
    return { ...updates, conversation, reads, history_id };
  }),
);

const searchMessages = bind(operations.searchMessages, async (context, input) => {
  const { store, caller, config } = context;
  const viewerId = caller.account.id;
  const { chat_id } = input;
  const conversation =
    chat_id && (await store.read((tx) => joinedConversation(tx, chat_id, caller)));
  const limit = pageSize(input.limit, config.limits);
  const words = searchWords(input.query);
  const hits = await store.search({
    words,
    viewerId,
    conversationId: conversation ? conversation.id : undefined,
    before: searchCursor.decode(input.cursor),
    limit: limit + 1,
  });
  const { items, next_cursor } = pageOf(hits, limit, (last) => searchCursor.encode(last.position));
  const uuids = items.map(({ uuid }) => uuid);
  const messages = await store.read((tx) => tx.messageViews(uuids, viewerId));
  return {
    items: messages.map((message) => ({ message, snippet: snippet(message.content, words) })),
    next_cursor,
  };
});

export const messages = [
  sendMessage,
  getChatHistory,
  getMessage,
  editMessage,
  deleteMessages,
  deleteMessagesForMe,
  getUpdates,
  searchMessages,
];

async function oneView(tx: ReadTx, uuid: string, viewerId: number): Promise<Message> {
  const [message] = await tx.messageViews([uuid], viewerId);
  if (!message) throw notFound("message");
  return message;
}

/** What an earlier send made. One deleted since is gone: a resend does not bring it back. */
async function firstSent(
  tx: ReadTx,
  conversation: ConversationRecord,
  clientMsgId: string | undefined,
  { account }: Caller,
): Promise<Message> {
  const uuid = await tx.sentBefore(conversation.id, account.id, clientMsgId ?? "");
  if (uuid === null) throw notFound("message");
  return oneView(tx, uuid, account.id);
}

async function checkReply(
  tx: ReadTx,
  uuid: string,
  conversation: ConversationRecord,
  caller: Caller,
): Promise<void> {
  const message = await messageIn(tx, uuid, conversation.id);
  if (message.deleted || (await tx.isHidden(message, caller.account.id))) throw notFound("message");
}

/** A message of the conversation, deleted or not: a place in it stays a place. */
async function messageIn(tx: ReadTx, uuid: string, conversationId: number): Promise<MessageRecord> {
  const message = await tx.message(uuid);
  if (message?.conversation_id !== conversationId) throw notFound("message");
  return message;
}

async function messagesIn(
  tx: ReadTx,
  uuids: readonly string[],
  conversationId: number,
): Promise<MessageRecord[]> {
  const found: MessageRecord[] = [];
  for (const uuid of new Set(uuids)) found.push(await messageIn(tx, uuid, conversationId));
  return found;
}

async function turnOf(tx: ReadTx, message: MessageRecord): Promise<TurnRecord> {
  const turn = await tx.turnOfMessage(message);
  if (!turn) throw new Error(`message ${message.uuid} streams without a turn`);
  return turn;
}

/** What changed outside of any one conversation, and which conversations changed. */
async function changedSince(
  tx: ReadTx,
  viewerId: number,
  { known, accounts_since, own_since }: InputOf<"getUpdates">,
) {
  const { accounts, ...names } = await tx.renamedSince(viewerId, accounts_since);
  const { hidden, ...own } = await tx.hiddenSince(viewerId, own_since);
  return {
    ...compare(known ? await tx.counters(viewerId) : [], known ?? {}),
    accounts,
    accounts_seq: names.seq,
    hidden,
    own_seq: own.seq,
    has_more: names.has_more || own.has_more,
  };
}

function compare(
  counters: readonly { uuid: string; seq: number }[],
  known: Readonly<Record<string, number>>,
) {
  const current = counters.map(({ uuid, seq }) => ({ conversation_id: uuid, seq }));
  const ids = new Set(current.map(({ conversation_id }) => conversation_id));
  return {
    ahead: current.filter(({ conversation_id, seq }) => seq > (known[conversation_id] ?? seq)),
    behind: current.filter(({ conversation_id, seq }) => seq < (known[conversation_id] ?? seq)),
    new: current.filter(({ conversation_id }) => known[conversation_id] === undefined),
    gone: Object.keys(known).filter((id) => !ids.has(id)),
  };
}
