import { operations } from "@parley/protocol";
import { componentOf } from "@parley/protocol/markup";
import { messageChanged } from "../changes/change.ts";
import { checkWritable, joinedConversation, visibleMessage } from "../domain/access.ts";
import { bind } from "../operation.ts";
import { replyToAction } from "../rules/action-tokens.ts";
import { notFound } from "../rules/failure.ts";
import type { Caller } from "../security/caller.ts";
import { type AccountRecord, NOBODY } from "../store/accounts.ts";
import type { MessageRecord } from "../store/messages.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

/** A label may be as long as a message: longer ones are truncated. */
const MAX_LABEL_LENGTH = 200;

const sendComponentAction = bind(operations.sendComponentAction, ({ store, caller }, input) =>
  store.write(async (tx) => {
    const conversation = await joinedConversation(tx, input.chat_id, caller);
    checkWritable(conversation);
    const place = await tx.message(input.message_id);
    if (place?.conversation_id !== conversation.id) throw notFound("message");
    const { message } = await visibleMessage(tx, input.message_id, caller);
    const [shown] = await tx.messageViews([message.uuid], NOBODY);
    const component = componentOf(shown?.content ?? "", input.action);
    if (component) await markUsed(tx, message, input.action, caller.account);

    const { username } = caller.account;
    const content = replyToAction({
      action: input.action,
      fields: input.fields ?? {},
      by: username,
    });
    if (content === null) return;
    const sender = await replyingAgent(tx, message, caller);
    if (!sender) return;
    const label = component?.label?.slice(0, MAX_LABEL_LENGTH).toWellFormed() ?? null;
    const reply = await tx.insertMessage({
      conversation,
      sender,
      content,
      client_msg_id: null,
      reply_to_id: message.uuid,
      mentions: [],
      action: { token: input.action, label, by: caller.account },
      at: Date.now(),
    });
    if (!reply) return;
    tx.emit(messageChanged("events.messageNew", reply, reply.seq));
  }),
);

export const components = [sendComponentAction];

/** Records that the account used a component of the message, and announces it as an edit. */
async function markUsed(
  tx: WriteTx,
  message: MessageRecord,
  token: string,
  by: AccountRecord,
): Promise<void> {
  const seq = await tx.useComponent(message, { token, by, at: Date.now() });
  const [changed] = await tx.messageViews([message.uuid], NOBODY);
  if (seq === null || !changed) return;
  tx.emit(messageChanged("events.messageEdited", changed, seq));
}

/** The agent that wrote the message, else one of the caller's, else any agent of the conversation. */
async function replyingAgent(
  tx: ReadTx,
  { sender_id, conversation_id }: MessageRecord,
  { account }: Caller,
): Promise<AccountRecord | undefined> {
  const agents = (await tx.conversationAgents(conversation_id)).map(({ account: agent }) => agent);
  return (
    agents.find(({ id }) => id === sender_id) ??
    agents.find(({ owner_id }) => owner_id === account.id) ??
    agents[0]
  );
}
