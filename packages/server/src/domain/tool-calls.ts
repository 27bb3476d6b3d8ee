import { counted } from "../changes/change.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { shownToolCall } from "../rules/tool-calls.ts";
import type { Caller } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";
import type { ToolCallChange, ToolCallRecord } from "../store/tool-calls.ts";

/** Changes a call and announces it. */
async function changeToolCall(
  tx: WriteTx,
  call: ToolCallRecord,
  change: ToolCallChange,
): Promise<void> {
  const seq = await tx.updateToolCall(call, change);
  const shown = shownToolCall({ ...call, ...change });
  const params = { message_id: call.message_uuid, call: shown };
  tx.emit(counted("events.toolCallUpdated", params, call.conversation_uuid, seq));
}

export interface Decision {
  readonly decision: "approve" | "reject";
  readonly note: string | null;
}

/**
 * Stores what the owner of an agent decided about a call. Throws if there is no such call (404), the
 * caller is not the owner (403), or it is decided, has expired or can no longer be made (409).
 */
export async function decide(
  tx: WriteTx,
  callUuid: string,
  { decision, note }: Decision,
  { account }: Caller,
): Promise<void> {
  const call = await tx.toolCall(callUuid);
  if (!call) throw notFound("tool call");
  await checkDecider(tx, call, account);
  const now = Date.now();
  if (call.status !== "pending") {
    throw conflict(call.status === "expired" ? "the call has expired" : "the call is decided");
  }
  if (call.expires_at !== null && call.expires_at <= now) throw conflict("the call has expired");
  await checkMember(tx, call);
  const decided = { decided_by: account.username, decided_at: now, note };
  await changeToolCall(
    tx,
    call,
    decision === "approve"
      ? { ...decided, status: "running" }
      : { ...decided, status: "rejected", finished_at: now },
  );
  await continueWhenDecided(tx, call);
}

/** Only the owner decides: the call uses their credentials. Others learn of it if they can see it. */
async function checkDecider(
  tx: WriteTx,
  call: ToolCallRecord,
  { id }: AccountRecord,
): Promise<void> {
  if (call.owner_id === id) return;
  const conversation = await tx.conversation(call.conversation_uuid, id);
  if (!conversation?.joined) throw notFound("tool call");
  throw forbidden("only the agent's owner may decide about its tool calls");
}

async function checkMember(tx: WriteTx, call: ToolCallRecord): Promise<void> {
  const agents = await tx.conversationAgents(call.conversation_id);
  if (!agents.some(({ account }) => account.id === call.agent.id)) {
    throw conflict("the agent is no longer in this conversation");
  }
}

/** Queues the turn that goes on once no call of the message waits any more and one was decided. */
async function continueWhenDecided(tx: WriteTx, call: ToolCallRecord): Promise<void> {
  const calls = await tx.toolCallsOf([call.message_id]);
  if (calls.some(({ status }) => status === "pending")) return;
  if (!calls.some(({ decided_at }) => decided_at !== null)) return;
  const message = await tx.message(call.message_uuid);
  const turn = message && (await tx.turnOfMessage(message));
  await queueContinuation(tx, call, turn?.trigger_uuid ?? call.message_uuid);
}

/** Queues a turn that continues after the calls of a message. */
async function queueContinuation(
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
