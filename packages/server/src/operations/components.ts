import { operations } from "@parley/protocol";
import { componentOf } from "@parley/protocol/markup";
import type { z } from "zod";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { checkWritable, joinedConversation, visibleMessage } from "../domain/access.ts";
import { answerElicitation } from "../domain/elicitations.ts";
import { announceEdit, postMessage } from "../domain/messages.ts";
import { busyRefusal, decide, type RequestedCall, requestCall } from "../domain/tool-calls.ts";
import { type AccountRecord, NOBODY } from "../rules/accounts.ts";
import { askedTool, decisionOf, elicitationAnswer, replyToAction } from "../rules/action-tokens.ts";
import { refusalError, spendingRefusal } from "../rules/dispatch.ts";
import { notFound } from "../rules/failure.ts";
import type { Caller } from "../security/caller.ts";
import type { MessageRecord } from "../store/message-records.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

type Needs = "store" | "toolRequests" | "toolServers";
export const components = createResource<Needs>();

/** A label may be as long as a message: longer ones are truncated. */
const MAX_LABEL_LENGTH = 200;

components.handle(operations.sendComponentAction, async (context, input) => {
  const { store, caller } = context;
  const tool = await requestedTool(context, input);
  return store.write(async (tx) => {
    const conversation = await joinedConversation(tx, input.chat_id, caller);
    checkWritable(conversation);
    const place = await tx.message(input.message_id);
    if (place?.conversation_id !== conversation.id) throw notFound("message");
    const { message } = await visibleMessage(tx, input.message_id, caller);
    const [shown] = await tx.messageViews([message.uuid], NOBODY);
    const component = componentOf(shown?.content ?? "", input.action);
    if (component) await markUsed(tx, message, input.action, caller.account);
    if (await decideOrAnswer(tx, message, input, context)) return;

    const label = component?.label?.slice(0, MAX_LABEL_LENGTH).toWellFormed() ?? null;
    const action = { token: input.action, label, by: caller.account };
    const fields = input.fields ?? {};
    const asked = { conversation, reply_to_id: message.uuid, arguments: fields, action };
    if (tool && (await requestTool(tx, message.sender_id, tool, asked))) return;
    const { username: by } = caller.account;
    const labels = component?.labels;
    const content = replyToAction({ action: input.action, fields, labels, by });
    if (content === null) return;
    const sender = await replyingAgent(tx, message, caller);
    if (!sender) return;
    await postMessage(tx, { conversation, sender, content, reply_to_id: message.uuid, action });
  });
});

type RequestedTool = NonNullable<Awaited<ReturnType<Context<Needs>["toolRequests"]["find"]>>>;
type Action = z.output<typeof operations.sendComponentAction.input>;

/** The tool that the action asks for, if an agent offered it in the message and may use it. */
async function requestedTool(
  { store, toolRequests, caller }: Context<Needs>,
  { action, message_id }: Action,
): Promise<RequestedTool | null> {
  const name = askedTool(action);
  if (name === null) return null;
  const agentId = await store.read(async (tx) => {
    const { message } = await visibleMessage(tx, message_id, caller);
    const [shown] = await tx.messageViews([message.uuid], NOBODY);
    const isOffered = componentOf(shown?.content ?? "", action) !== null;
    return message.sender_kind === "agent" && isOffered ? message.sender_id : null;
  });
  return agentId === null ? null : toolRequests.find(agentId, name);
}

/**
 * Asks for the call in the name of the agent. Returns false if the agent has left the conversation, or
 * its owner has blocked the person.
 */
async function requestTool(
  tx: WriteTx,
  agentId: number,
  { owner_id, server_id, server, tool, title, fingerprint, policy }: RequestedTool,
  asked: Pick<RequestedCall, "conversation" | "reply_to_id" | "arguments" | "action">,
): Promise<boolean> {
  const { conversation, action } = asked;
  const agents = await tx.conversationAgents(conversation.id);
  const member = agents.find(({ account }) => account.id === agentId);
  const blockers = await tx.blockersAmong([owner_id], [action.by.id]);
  if (!member || blockers.length > 0) return false;
  const refusal = spendingRefusal(member, action.by);
  await requestCall(tx, {
    ...asked,
    agent: member.account,
    owner_id,
    tool: { server_id, server, tool, title, fingerprint, policy },
    refusal: refusal ? refusalError(refusal).message : await busyRefusal(tx, member, conversation),
  });
  return true;
}

/** Handles the actions that decide about a tool call or answer a tool. Returns false for all others. */
async function decideOrAnswer(
  tx: WriteTx,
  message: MessageRecord,
  { action, fields = {} }: Action,
  { caller, toolServers }: Context<Needs>,
): Promise<boolean> {
  const decided = decisionOf(action);
  const call = decided && (await tx.toolCall(decided.call_id));
  // A button of another message may say anything: it would have people approve what they do not see.
  if (decided && call?.message_id === message.id) {
    const decision = { decision: decided.decision, note: null, isOfCard: true };
    await decide(tx, decided.call_id, decision, caller, toolServers.operatorTools());
    return true;
  }
  const answer = elicitationAnswer(action);
  if (!answer) return false;
  const given = { action: answer.action, content: fields };
  await answerElicitation(tx, answer.id, given, caller, message);
  return true;
}

/** Records that the account used a component of the message, and announces it as an edit. */
async function markUsed(tx: WriteTx, message: MessageRecord, token: string, by: AccountRecord) {
  const seq = await tx.useComponent(message, { token, by, at: Date.now() });
  if (seq !== null) await announceEdit(tx, message.uuid, seq);
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
