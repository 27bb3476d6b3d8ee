import { badField, forbidden, notFound } from "../rules/failure.ts";
import type { Caller } from "../security/caller.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { MessageRecord } from "../store/messages.ts";
import type { ReadTx } from "../store/store.ts";

/** The conversation, if it exists (404) and the caller takes part in it (403). */
export async function joinedConversation(
  tx: ReadTx,
  uuid: string,
  { account }: Caller,
): Promise<ConversationRecord> {
  const conversation = await tx.conversation(uuid, account.id);
  if (!conversation) throw notFound("conversation");
  if (!conversation.joined) throw forbidden("you are not a participant of this conversation");
  return conversation;
}

/** The message with its conversation, if the caller can see it. */
export async function visibleMessage(
  tx: ReadTx,
  uuid: string,
  caller: Caller,
): Promise<{ message: MessageRecord; conversation: ConversationRecord }> {
  const message = await tx.message(uuid);
  if (!message || message.deleted) throw notFound("message");
  const conversation = await joinedConversation(tx, message.conversation_uuid, caller);
  if (await tx.isHidden(message, caller.account.id)) throw notFound("message");
  return { message, conversation };
}

/** The same for what only groups have (400). */
export async function joinedGroup(
  tx: ReadTx,
  uuid: string,
  caller: Caller,
): Promise<ConversationRecord> {
  const conversation = await joinedConversation(tx, uuid, caller);
  if (conversation.kind !== "group") throw badField("chat_id", "is not a group");
  return conversation;
}
