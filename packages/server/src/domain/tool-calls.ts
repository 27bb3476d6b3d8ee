import { counted } from "../changes/change.ts";
import { approvalCard, callNotice, isShownWhole } from "../rules/approval-card.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { isOverdue, needsApproval, shownToolCall, type ToolPolicy } from "../rules/tool-calls.ts";
import type { Caller } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ConversationAgent } from "../store/agents.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { NewAction } from "../store/message-records.ts";
import type { WriteTx } from "../store/store.ts";
import type { NewToolCall, ToolCallChange, ToolCallRecord } from "../store/tool-calls.ts";
import type { FinishedTurn, TurnRecord } from "../store/turns.ts";
import { postMessage } from "./messages.ts";
import { type ServerTools, toolPermission } from "./tools.ts";

/** How long a call waits for a decision. */
export const APPROVAL_MS = 24 * 60 * 60_000;

/** Adds a call to a message and announces it. */
export async function addToolCall(
  tx: WriteTx,
  call: NewToolCall,
  { message_uuid, conversation_uuid }: Pick<ToolCallRecord, "message_uuid" | "conversation_uuid">,
): Promise<void> {
  const seq = await tx.insertToolCall(call);
  const params = { message_id: message_uuid, call: shownToolCall({ ...call, decided_by: null }) };
  tx.emit(counted("events.toolCallUpdated", params, conversation_uuid, seq));
}

/** Changes a call and announces it. What its tool asked is deleted with the answers once the call has ended. */
export async function changeToolCall(tx: WriteTx, call: ToolCallRecord, change: ToolCallChange) {
  const seq = await tx.updateToolCall(call, change);
  if (change.finished_at !== undefined) await tx.deleteElicitations(call.uuid);
  const shown = shownToolCall({ ...call, ...change });
  const params = { message_id: call.message_uuid, call: shown };
  tx.emit(counted("events.toolCallUpdated", params, call.conversation_uuid, seq));
}

export interface Decision {
  readonly decision: "approve" | "reject";
  readonly note: string | null;
  /** Made with a button of the card. */
  readonly isOfCard?: boolean;
}

/**
 * Stores what the owner of an agent decided about a call. Throws if there is no such call (404), the
 * caller is not the owner (403), or it is decided, has expired or can no longer be made (409).
 */
export async function decide(
  tx: WriteTx,
  callUuid: string,
  { decision, note, isOfCard = false }: Decision,
  { account }: Caller,
  operatorTools: ServerTools,
): Promise<void> {
  const call = await tx.toolCall(callUuid);
  if (!call) throw notFound("tool call");
  // The call uses the owner's credentials.
  if (call.owner_id !== account.id) {
    throw forbidden("only the agent's owner may decide about its tool calls");
  }
  const now = Date.now();
  const hasExpired = call.status === "expired" || isOverdue(call, now);
  if (hasExpired) throw conflict("the call has expired");
  if (call.status !== "pending") throw conflict("the call is decided");
  await checkComplete(tx, call);
  await checkMember(tx, call);
  if (decision === "approve") {
    if (isOfCard && !isShownWhole(call)) throw conflict(SHORTENED);
    await checkPermitted(tx, call, operatorTools);
  }
  const decided = { decided_by: account.username, decided_at: now, note };
  const outcomes = {
    approve: { ...decided, status: "running" },
    reject: { ...decided, status: "rejected", finished_at: now },
  } as const;
  await changeToolCall(tx, call, outcomes[decision]);
  await continueWhenDecided(tx, call);
}

const SHORTENED =
  "the card does not show all arguments: read them with getToolCalls and decide with decideToolCall, or in the web client";

/** Other calls of an answer may still run. What is decided is carried out after the message. */
async function checkComplete(tx: WriteTx, { message_uuid }: ToolCallRecord): Promise<void> {
  const message = await tx.message(message_uuid);
  if (!message?.finalized) throw conflict("the agent's message is not complete yet");
}

async function checkMember(tx: WriteTx, call: ToolCallRecord): Promise<void> {
  const agents = await tx.conversationAgents(call.conversation_id);
  if (!agents.some(({ account }) => account.id === call.agent.id)) {
    throw conflict("the agent is no longer in this conversation");
  }
}

const onlyRejected = (why: string) =>
  conflict(`${why}: the call can only be rejected`, { decision: "must be reject" });

/** The owner approves a call of the tool that was described to them, and that the agent may use. */
async function checkPermitted(tx: WriteTx, call: ToolCallRecord, operatorTools: ServerTools) {
  const { server_id } = call;
  if (server_id === null) return;
  // An approval would be used up by a call that cannot be made.
  if (operatorTools.get(server_id) === null) {
    throw conflict("the tool server has not answered yet, please try again");
  }
  const permission = await toolPermission(tx, { ...call, server_id }, operatorTools);
  if (!permission) throw onlyRejected("the agent may no longer use this tool");
  if (permission.fingerprint !== call.fingerprint) {
    throw onlyRejected("the tool has changed since then");
  }
}

/**
 * Queues the turn that goes on once no call of the message waits any more, if the owner has rejected
 * one or approved one that is still to be made.
 */
async function continueWhenDecided(tx: WriteTx, call: ToolCallRecord): Promise<void> {
  const calls = await tx.toolCallsOf([call.message_id]);
  if (calls.some(({ status }) => status === "pending")) return;
  // Somebody may have stopped the agents since a call was approved: they start again only if asked to.
  const isDue = ({ status, decided_at }: ToolCallRecord) =>
    decided_at !== null && (status === "running" || status === "rejected");
  if (!calls.some(isDue)) return;
  const message = await tx.message(call.message_uuid);
  const turn = message && (await tx.turnOfMessage(message));
  await queueContinuation(tx, call, turn?.trigger_uuid ?? call.message_uuid);
}

/** Queues a turn that continues after the calls of a message. */
export async function queueContinuation(
  tx: WriteTx,
  call: Pick<ToolCallRecord, "agent_id" | "conversation_id" | "message_uuid">,
  trigger_uuid: string,
): Promise<void> {
  await tx.queueTurn({
    agent_id: call.agent_id,
    conversation_id: call.conversation_id,
    trigger_uuid,
    continues_uuid: call.message_uuid,
    open_ended: false,
    refusal: null,
    most_waiting: Number.MAX_SAFE_INTEGER,
    at: Date.now(),
  });
  tx.emit({ kind: "turns_queued" });
}

const NOT_MADE = "It was not made.";

/**
 * Ends the calls of a turn that has ended while they ran: whether they were carried out is not known.
 * Calls that were approved and not made yet end too, and those that wait for a decision if the message
 * is not complete: it has no card for them. Returns how many it has ended.
 */
export async function endOpenCalls(
  tx: WriteTx,
  turn: Pick<TurnRecord, "message_id" | "continues_uuid" | "rounds">,
  ending: FinishedTurn["status"],
): Promise<number> {
  if (turn.rounds.length === 0 && turn.continues_uuid === null) return 0;
  const error = ending === "stopped" ? "stopped" : "interrupted";
  const continued = turn.continues_uuid === null ? null : await tx.message(turn.continues_uuid);
  const ids = [turn.message_id, continued?.id].filter((id) => id !== null && id !== undefined);
  const isOpen = ({ status }: ToolCallRecord) =>
    status === "running" || (status === "pending" && ending !== "complete");
  const open = (await tx.toolCallsOf(ids)).filter(isOpen);
  for (const call of open) {
    const why = call.started_at === null && error === "interrupted" ? NOT_MADE : error;
    await changeToolCall(tx, call, { status: "failed", error: why, finished_at: Date.now() });
  }
  return open.length;
}

const AGENT_LEFT = "The agent has left the conversation.";

/** Ends the calls of agents that leave a conversation and wait for their owners: nobody can decide. */
export async function endPendingCalls(
  tx: WriteTx,
  conversationId: number,
  leaving: readonly AccountRecord[],
): Promise<void> {
  for (const call of await callsOfUndecidedMessages(tx, conversationId, leaving)) {
    if (call.status !== "pending" && !isApproved(call)) continue;
    const status = isApproved(call) ? "failed" : "rejected";
    await changeToolCall(tx, call, { status, error: AGENT_LEFT, finished_at: Date.now() });
  }
}

/** Ends calls that are approved and not made yet, because others of their message are not decided. */
export async function stopApprovedCalls(
  tx: WriteTx,
  conversationId: number,
  agents: readonly AccountRecord[],
): Promise<void> {
  const calls = await callsOfUndecidedMessages(tx, conversationId, agents);
  const stopped = { status: "failed", error: "stopped", finished_at: Date.now() } as const;
  for (const call of calls.filter(isApproved)) await changeToolCall(tx, call, stopped);
}

const isApproved = ({ status, started_at }: ToolCallRecord) =>
  status === "running" && started_at === null;

/** All calls of those messages of the agents in which at least one call waits for its owner. */
async function callsOfUndecidedMessages(
  tx: WriteTx,
  conversationId: number,
  agents: readonly AccountRecord[],
): Promise<ToolCallRecord[]> {
  const messages = new Set<number>();
  for (const { id, owner_id } of agents) {
    if (owner_id === null) continue;
    for (const call of await tx.pendingToolCalls(owner_id, Date.now())) {
      const isTheirs = call.agent_id === id && call.conversation_id === conversationId;
      if (isTheirs) messages.add(call.message_id);
    }
  }
  return tx.toolCallsOf([...messages]);
}

/** Ends pending calls that nobody decided in time. Returns how many it has looked at. */
export async function expireToolCalls(tx: WriteTx, limit: number): Promise<number> {
  const expired = await tx.expiredToolCalls(Date.now(), limit);
  for (const { uuid } of expired) {
    const call = await tx.toolCall(uuid);
    if (call?.status !== "pending") continue;
    await changeToolCall(tx, call, { status: "expired", finished_at: Date.now() });
    await continueWhenDecided(tx, call);
  }
  return expired.length;
}

/** A tool that somebody asks for with a component of an agent's message. */
export interface RequestedCall {
  readonly conversation: ConversationRecord;
  /** The message with the component. */
  readonly reply_to_id: string;
  readonly agent: AccountRecord;
  readonly owner_id: number;
  readonly tool: Pick<NewToolCall, "server_id" | "server" | "tool" | "title" | "fingerprint"> & {
    readonly policy: ToolPolicy;
  };
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly action: NewAction;
  /** Why the agent must not act for this person; null if it may. */
  readonly refusal: string | null;
}

/** Why an agent takes no further requests for calls in a conversation: as many wait as turns may wait. */
export async function busyRefusal(
  tx: WriteTx,
  { account, waiting_turns }: Pick<ConversationAgent, "account" | "waiting_turns">,
  { id }: ConversationRecord,
): Promise<string | null> {
  const turns = (await tx.openTurns(id)).filter(({ agent }) => agent.id === account.id);
  const waiting = turns.filter(({ status }) => status === "waiting");
  const calls = await tx.pendingToolCalls(account.owner_id ?? account.id, Date.now());
  const ofAgent = calls.filter(({ agent_id }) => agent_id === account.id);
  const pending = ofAgent.filter(({ conversation_id }) => conversation_id === id);
  return waiting.length + pending.length < waiting_turns
    ? null
    : "Too many requests wait for this agent or its owner. Try again later.";
}

/**
 * Posts a message of the agent with the call, which waits for its owner or is made by the turn that
 * goes on after it.
 */
export async function requestCall(tx: WriteTx, requested: RequestedCall): Promise<void> {
  const { conversation, agent, owner_id, action, refusal } = requested;
  const { policy, ...tool } = requested.tool;
  const now = Date.now();
  const uuid = Bun.randomUUIDv7();
  const asks = needsApproval(policy, conversation.kind === "direct");
  const call = { ...tool, uuid, arguments: requested.arguments };
  const { id: message_uuid } = await postMessage(tx, {
    conversation,
    sender: agent,
    content: refusal ?? (asks ? approvalCard([call]) : callNotice(call, action.by.username)),
    reply_to_id: requested.reply_to_id,
    action,
  });
  if (refusal !== null) return;
  const message = await tx.message(message_uuid);
  if (!message) return;
  const place = { agent_id: agent.id, conversation_id: conversation.id };
  const added: NewToolCall = {
    ...call,
    ...place,
    message_id: message.id,
    owner_id,
    round: 0,
    position: 0,
    text_bytes: 0,
    model_id: `call_${uuid.replaceAll("-", "")}`,
    provider_fields: null,
    status: asks ? "pending" : "running",
    error: null,
    created_at: now,
    started_at: null,
    finished_at: null,
    expires_at: asks ? now + APPROVAL_MS : null,
  };
  await addToolCall(tx, added, { message_uuid, conversation_uuid: conversation.uuid });
  if (!asks) await queueContinuation(tx, { ...place, message_uuid }, message_uuid);
}
