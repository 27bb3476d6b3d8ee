import { badField, forbidden, notFound } from "../rules/failure.ts";
import type { Participant } from "../security/caller.ts";
import { after } from "../store/awaitable.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { ReadTx } from "../store/store.ts";

/** The conversation. Throws if it does not exist (404) or the caller takes no part in it (403). */
export const joinedConversation = (tx: ReadTx, uuid: string, { account }: Participant) =>
  after(tx.conversation(uuid, account.id), (conversation) => {
    if (!conversation) throw notFound("conversation");
    if (!conversation.joined) throw forbidden("you are not a participant of this conversation");
    return conversation;
  });

/**
 * A message with its conversation. Throws if it does not exist, is deleted or hidden (404), or the
 * caller takes no part in the conversation (403).
 */
export async function visibleMessage(tx: ReadTx, uuid: string, caller: Participant) {
  const message = await tx.message(uuid);
  if (!message || message.deleted) throw notFound("message");
  const conversation = await joinedConversation(tx, message.conversation_uuid, caller);
  if (await tx.isHidden(message, caller.account.id)) throw notFound("message");
  return { message, conversation };
}

/** The conversation, which must also be a group (400). */
export async function joinedGroup(tx: ReadTx, uuid: string, caller: Participant) {
  const conversation = await joinedConversation(tx, uuid, caller);
  if (conversation.kind !== "group") throw badField("chat_id", "is not a group");
  return conversation;
}

/** The conversation, if the caller has left it or was removed; otherwise null. */
export async function formerConversation(tx: ReadTx, uuid: string, { account }: Participant) {
  const conversation = await tx.conversation(uuid, account.id);
  if (!conversation || conversation.joined) return null;
  const left = await tx.formerConversations(account.id);
  return left.some(({ id }) => id === conversation.id) ? conversation : null;
}

/**
 * Throws (403) in a direct conversation that is closed, because one of the two accounts is deleted, or
 * of two people of whom one blocked the other.
 */
export function checkWritable({
  closed_at,
  block,
}: Pick<ConversationRecord, "closed_at" | "block">): void {
  if (closed_at !== null) throw forbidden("the other account of this conversation is deleted");
  if (block === "own") throw forbidden("you have blocked this person: unblock them to write");
  if (block === "theirs") throw forbidden("you cannot write to this person");
}
