import { BLANK, type File, isBlank, type Message, operations } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { durable, messageChanged } from "../changes/change.ts";
import { checkWritable, joinedConversation, visibleMessage } from "../domain/access.ts";
import { endArchives } from "../domain/chat-states.ts";
import { removeMessages } from "../domain/deletions.ts";
import { checkFileCount, filesToSend } from "../domain/files.ts";
import { mentionsIn } from "../domain/messages.ts";
import {
  createCursor,
  fitting,
  pageAfter,
  pageAround,
  pageBefore,
  pageBounds,
} from "../domain/pagination.ts";
import { queueTurns } from "../domain/turns.ts";
import { fittingUpdates, readChangesSince } from "../domain/updates.ts";
import { threadCpuMs } from "../observe/cpu-time.ts";
import { NOBODY } from "../rules/accounts.ts";
import { COST_PER_MS, contentCost } from "../rules/costs.ts";
import { badField, conflict, forbidden, notFound } from "../rules/failure.ts";
import { publicFile, shownText } from "../rules/files.ts";
import { mayDelete } from "../rules/permissions.ts";
import { searchWords, snippet } from "../rules/search.ts";
import type { Participant } from "../security/caller.ts";
import { type Awaitable, after } from "../store/awaitable.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import { shareOfLoop } from "../store/event-loop.ts";
import type { MessageRecord } from "../store/message-records.ts";
import type { Worked } from "../store/search.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

type Needs = "config" | "store";
export const messages = createResource<Needs>();

const searchCursor = createCursor(z.int());

type SendInput = z.output<typeof operations.sendMessage.input>;

type Sending = Pick<Context<Needs, Participant>, "caller" | "config" | "charge">;

messages.handle(operations.sendMessage, (context, input) => {
  const { store, caller, config } = context;
  if (input.metadata && caller.kind !== "delegate") {
    throw forbidden("only a service key may give metadata");
  }
  if (input.file_ids) checkFileCount(input.file_ids.length, config.limits.files_per_message);
  return store.write((tx) => {
    const found = joinedConversation(tx, input.chat_id, caller);
    return after(found, (conversation) => {
      checkWritable(conversation);
      return send(tx, conversation, input, context);
    });
  });
});

function send(tx: WriteTx, conversation: ConversationRecord, input: SendInput, context: Sending) {
  const { caller } = context;
  const target = isReplyTargetGone(tx, input.reply_to_id, conversation, caller);
  return after(target, (gone) => {
    if (gone) return firstSent(tx, conversation, input.client_msg_id, caller);
    const { file_ids } = input;
    return file_ids
      ? insertWithFiles(tx, conversation, { ...input, file_ids }, context)
      : insert(tx, conversation, input, context);
  });
}

/** A message with files. The first send of a message that is sent again has used them. */
async function insertWithFiles(
  tx: WriteTx,
  conversation: ConversationRecord,
  input: SendInput & { file_ids: string[] },
  context: Sending,
): Promise<Message> {
  const { caller } = context;
  const { file_ids, client_msg_id } = input;
  const sent =
    client_msg_id && (await tx.sentBefore(conversation.id, caller.account.id, client_msg_id));
  if (sent) return firstSent(tx, conversation, client_msg_id, caller);
  const files = await filesToSend(tx, file_ids, conversation.uuid, caller);
  const message = await insert(tx, conversation, input, context, files.map(publicFile));
  if (!(await tx.attachFiles(file_ids, message.id, Date.now()))) {
    throw conflict("a file is part of another message", { file_ids: "contains a used file" });
  }
  return message;
}

function insert(
  tx: WriteTx,
  conversation: ConversationRecord,
  input: SendInput,
  { caller, config, charge }: Sending,
  files?: readonly File[],
): Awaitable<Message> {
  const { content, client_msg_id = null, reply_to_id = null, metadata } = input;
  charge(contentCost(content));
  const mentioned = findMentions(tx, content, conversation, { caller, config, charge });
  const inserted = after(mentioned, (mentions) =>
    tx.insertMessage({
      conversation,
      sender: caller.account,
      content,
      client_msg_id,
      reply_to_id,
      mentions,
      ...(files && { files }),
      metadata,
      at: Date.now(),
    }),
  );
  return after(inserted, (message) => {
    if (!message) return firstSent(tx, conversation, input.client_msg_id, caller);
    tx.emit(messageChanged("events.messageNew", message, message.seq));
    const ended = endArchives(tx, conversation, caller.account);
    return after(ended, () =>
      conversation.agent_count === 0
        ? message
        : queueTurns(tx, conversation, message, caller.account).then(() => message),
    );
  });
}

messages.read(operations.getChatHistory, async (tx, { caller, config }, input) => {
  const { id: conversationId } = await joinedConversation(tx, input.chat_id, caller);
  const bounds = pageBounds(input.limit, config.limits);
  const view = { conversationId, viewerId: caller.account.id, ...bounds };
  const anchor = input.before ?? input.after ?? input.around;
  if (anchor === undefined) return pageBefore(tx, view);
  const { seq } = await messageIn(tx, anchor, conversationId);
  if (input.before) return pageBefore(tx, view, seq);
  return input.after ? pageAfter(tx, view, seq) : pageAround(tx, view, seq);
});

messages.read(operations.getMessage, async (tx, { caller }, { message_id }) => {
  await visibleMessage(tx, message_id, caller);
  return oneView(tx, message_id, caller.account.id);
});

messages.write(operations.editMessage, async (tx, context, { message_id, content }) => {
  const { caller, charge } = context;
  const { message, conversation } = await visibleMessage(tx, message_id, caller);
  if (message.sender_id !== caller.account.id) {
    throw forbidden("only its sender may edit a message");
  }
  if (!message.finalized) throw forbidden("an answer can be edited once it is complete");
  checkWritable(conversation);
  if (message.files.length === 0 && isBlank(content)) throw badField("content", BLANK);
  charge(contentCost(content));
  const mentions = await findMentions(tx, content, conversation, context);
  const seq = await tx.editMessage(message, content, mentions, Date.now());
  const shown = await oneView(tx, message_id, NOBODY);
  tx.emit(messageChanged("events.messageEdited", shown, seq));
  return oneView(tx, message_id, caller.account.id);
});

/** The mentions of a message; its sender is charged for them. */
function findMentions(
  tx: ReadTx,
  content: string,
  { id }: ConversationRecord,
  { caller, config, charge }: Sending,
): Awaitable<string[]> {
  const most = config.limits.mentions_per_message;
  return after(mentionsIn(tx, content, id, caller.account, most), (mentions) => {
    charge(mentions.length);
    return mentions;
  });
}

messages.write(operations.deleteMessages, async (tx, { caller }, input) => {
  const conversation = await joinedConversation(tx, input.chat_id, caller);
  const named = await messagesIn(tx, input.message_ids, conversation.id);
  if (!named.every((message) => mayDelete(caller.account, message, conversation))) {
    throw forbidden("only its sender, its agent's owner or the group's admin may delete a message");
  }
  const uuids = named.map(({ uuid }) => uuid);
  await removeMessages(tx, conversation, uuids);
});

messages.write(operations.deleteMessagesForMe, async (tx, { caller }, input) => {
  const conversation = await joinedConversation(tx, input.chat_id, caller);
  const named = await messagesIn(tx, input.message_ids, conversation.id);
  const messages = named.filter((message) => !message.deleted);
  if (messages.length === 0) return;
  const own_seq = await tx.hideMessages(messages, caller.account.id);
  if (own_seq === null) return;
  const params = { conversation_id: conversation.uuid, ids: messages.map(({ uuid }) => uuid) };
  const users = [caller.account.username];
  tx.emit(durable({ method: "events.messageDeleted", params, own_seq }, { users }));
});

messages.read(operations.getUpdates, async (tx, { caller, config }, input) => {
  const viewerId = caller.account.id;
  const history_id = await tx.historyId();
  if (input.chat_id === undefined) {
    return { ...(await readChangesSince(tx, viewerId, input)), history_id };
  }
  const { id: conversationId } = await joinedConversation(tx, input.chat_id, caller);
  const { limit, bytes } = pageBounds(input.limit ?? config.limits.page_size, config.limits);
  const since = input.since_seq ?? 0;
  const found = await tx.updates({ conversationId, viewerId, since, limit });
  const updates = fittingUpdates(found, since, bytes);
  const conversation = await tx.conversationView(conversationId, viewerId);
  const reads = await tx.readPositions(conversationId);
  return { ...updates, conversation, reads, history_id };
});

messages.handle(operations.searchMessages, async (context, input) => {
  const { store, caller, config, charge } = context;
  const worked = (ms: number) => charge(ms * COST_PER_MS);
  const viewerId = caller.account.id;
  const { chat_id } = input;
  const conversation =
    chat_id && (await store.read((tx) => joinedConversation(tx, chat_id, caller)));
  const page = pageBounds(input.limit, config.limits);
  const words = searchWords(input.query);
  const query = {
    words,
    viewerId,
    conversationId: conversation ? conversation.id : undefined,
    before: searchCursor.decode(input.cursor),
    limit: page.limit + 1,
  };
  const hits = await store.search(query, worked);
  const found = hits.slice(0, page.limit);
  const uuids = found.map(({ uuid }) => uuid);
  const messages = await store.read((tx) => tx.messageViews(uuids, viewerId));
  const shown = fitting(messages, page.bytes);
  // Hits that are no longer visible end the page only if no message of it was left out.
  const last = shown.length < messages.length ? shown.at(-1)?.id : uuids.at(-1);
  const end = found.find(({ uuid }) => uuid === last);
  const hasMore = end !== undefined && end !== hits.at(-1);
  return {
    items: await withSnippets(shown, words, worked),
    next_cursor: hasMore ? searchCursor.encode(end.position) : null,
  };
});

/** Other work of the process goes on in between: a page of long messages takes a long time. */
async function withSnippets(messages: Message[], words: readonly string[], worked: Worked) {
  const items: { message: Message; snippet: string }[] = [];
  for (const message of messages) {
    await shareOfLoop();
    const before = threadCpuMs();
    items.push({ message, snippet: snippet(shownText(message.content, message.files), words) });
    worked(threadCpuMs() - before);
  }
  return items;
}

async function oneView(tx: ReadTx, uuid: string, viewerId: number): Promise<Message> {
  const [message] = await tx.messageViews([uuid], viewerId);
  if (!message) throw notFound("message");
  return message;
}

const replyTargetGone = () => notFound("message", { reply_to_id: "names no message that is left" });

/** The message of an earlier send. If it was deleted since, sending it again does not restore it. */
async function firstSent(
  tx: ReadTx,
  conversation: ConversationRecord,
  clientMsgId: string | undefined,
  { account }: Participant,
): Promise<Message> {
  const uuid = await tx.sentBefore(conversation.id, account.id, clientMsgId ?? "");
  if (uuid === null) throw replyTargetGone();
  const [message] = await tx.messageViews([uuid], account.id);
  if (!message) throw notFound("message", { client_msg_id: "is that of a deleted message" });
  return message;
}

/**
 * Whether the message to reply to was deleted, or hidden by the caller. That may have happened after
 * the first send of a message that is sent again, which then still succeeds.
 */
function isReplyTargetGone(
  tx: ReadTx,
  uuid: string | undefined,
  conversation: ConversationRecord,
  { account }: Participant,
): Awaitable<boolean> {
  if (uuid === undefined) return false;
  return messageIn(tx, uuid, conversation.id, replyTargetGone).then(
    (message) => message.deleted || tx.isHidden(message, account.id),
  );
}

/** A message of the conversation. Deleted ones count: clients may hold them as an anchor. */
async function messageIn(
  tx: ReadTx,
  uuid: string,
  conversationId: number,
  gone = () => notFound("message"),
): Promise<MessageRecord> {
  const message = await tx.message(uuid);
  if (message?.conversation_id !== conversationId) throw gone();
  return message;
}

async function messagesIn(tx: ReadTx, uuids: readonly string[], conversationId: number) {
  const found: MessageRecord[] = [];
  for (const uuid of new Set(uuids)) found.push(await messageIn(tx, uuid, conversationId));
  return found;
}
