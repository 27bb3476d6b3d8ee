import { operations } from "@parley/protocol";
import { counted } from "../announcement.ts";
import { badField, notFound } from "../failure.ts";
import { joinedConversation, visibleMessage } from "../guards.ts";
import { bind } from "../operation.ts";
import { replyToAction } from "../rules/action-tokens.ts";

const sendComponentAction = bind(operations.sendComponentAction, ({ store, caller }, input) =>
  store.write(async (tx) => {
    const conversation = await joinedConversation(tx, input.chat_id, caller);
    const place = await tx.message(input.message_id);
    if (place?.conversation_id !== conversation.id) throw notFound("message");
    const { message } = await visibleMessage(tx, input.message_id, caller);
    if (message.sender_kind !== "agent") {
      throw badField("message_id", "is not an agent's message");
    }
    const seats = await tx.conversationAgents(conversation.id);
    const author = seats.find(({ account }) => account.id === message.sender_id)?.account;
    if (!author) throw badField("message_id", "is of an agent that has left the conversation");
    const content = replyToAction(input.action, input.fields ?? {});
    if (content === null) return;
    const reply = await tx.insertMessage({
      conversation,
      sender: author,
      content,
      client_msg_id: null,
      reply_to_id: null,
      mentions: [],
      at: Date.now(),
    });
    if (!reply) return;
    tx.emit(counted("events.messageNew", reply, conversation.uuid, reply.seq));
  }),
);

export const components = [sendComponentAction];
