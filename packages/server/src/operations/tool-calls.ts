import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { visibleMessage } from "../domain/access.ts";
import { pendingQuestions } from "../domain/elicitations.ts";
import { fitting } from "../domain/pagination.ts";
import { decide } from "../domain/tool-calls.ts";
import { publicAccount } from "../rules/accounts.ts";
import { notFound } from "../rules/failure.ts";
import { toolCallDetail } from "../rules/tool-calls.ts";

export const toolCalls = createResource<"config" | "store" | "toolServers">();

toolCalls.read(operations.getToolCalls, async (tx, { caller }, { message_id }) => {
  const { message } = await visibleMessage(tx, message_id, caller);
  const calls = await tx.toolCallsOf([message.id]);
  return { items: calls.map((call) => toolCallDetail(call, caller.account)) };
});

toolCalls.read(operations.getPendingToolCalls, async (tx, { caller, config }) => {
  const now = Date.now();
  const { page_size, page_bytes } = config.limits;
  const calls = await tx.pendingToolCalls(caller.account.id, now, page_size + 1);
  const listed = calls.slice(0, page_size).map((call) => ({
    call: toolCallDetail(call, caller.account),
    message_id: call.message_uuid,
    conversation_id: call.conversation_uuid,
    agent: publicAccount(call.agent),
  }));
  const items = fitting(listed, page_bytes);
  return {
    items,
    questions: await pendingQuestions(tx, caller, now),
    ...(items.length < calls.length && { has_more: true as const }),
  };
});

toolCalls.handle(operations.decideToolCall, async (context, input) => {
  const { store, caller, toolServers } = context;
  const asked = await store.read((tx) => tx.toolCall(input.call_id));
  if (asked?.server_id) await toolServers.contacted([asked.server_id]);
  return store.write(async (tx) => {
    const decision = { ...input, note: input.note || null };
    await decide(tx, input.call_id, decision, caller, toolServers.operatorTools());
    const call = await tx.toolCall(input.call_id);
    if (!call) throw notFound("tool call");
    return toolCallDetail(call, caller.account);
  });
});
