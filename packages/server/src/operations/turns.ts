import { operations, type TurnReceipt } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { transient } from "../changes/change.ts";
import { checkWritable, visibleMessage } from "../domain/access.ts";
import { checkMayAsk } from "../domain/blocks.ts";
import { deltaOf, type Ending, endTurn, stopTurns, turnsQueued } from "../domain/turns.ts";
import { publicAccount } from "../rules/accounts.ts";
import { EXTERNAL_LEASE_MS, EXTERNAL_NODE } from "../rules/agents.ts";
import { spendingRefusal } from "../rules/dispatch.ts";
import { conflict, failure, forbidden, notFound } from "../rules/failure.ts";
import { mayControlTurn } from "../rules/permissions.ts";
import { isoOrNull } from "../rules/time.ts";
import { shownToolCall } from "../rules/tool-calls.ts";
import type { AgentCaller, Caller } from "../security/caller.ts";
import type { ReadTx, Store } from "../store/store.ts";
import type { ToolCallRecord } from "../store/tool-calls.ts";
import type { TurnRecord } from "../store/turns.ts";

export const turns = createResource<"store" | "externalTurns">();

/** The longest answer of an external agent: about what models write at most. */
const MAX_ANSWER_BYTES = 131_072;

turns.handle(operations.claimTurn, ({ externalTurns, caller, signal }, input) =>
  externalTurns.claim(caller, {
    turnId: input.turn_id ?? null,
    waitMs: (input.wait_seconds ?? 0) * 1000,
    signal: signal(),
  }),
);

turns.handle(operations.writeTurn, async (context, { turn_id, delta, offset }) => {
  const { store, caller, externalTurns } = context;
  externalTurns.seen(caller.account);
  const turn = await store.read((tx) => claimedTurn(tx, turn_id, caller));
  const end = offset + Buffer.byteLength(delta);
  if (end > MAX_ANSWER_BYTES) throw await notStored(store, turn_id, caller, offset);
  const chunk = { turn_id, text: delta, offset: end, first: offset === 0, at: Date.now() };
  const isStored = await store.note(async (tx) => {
    // First, since it locks the turn: of two calls at once, the second finds the turn locked when it
    // appends, and its unit runs again, instead of both appending at the same offset.
    await tx.renewLeases(EXTERNAL_NODE, [turn_id], EXTERNAL_LEASE_MS);
    if (delta === "") return (await tx.streamedBytes(turn.message_id ?? 0)) === offset;
    const refused = await tx.appendChunks(EXTERNAL_NODE, [chunk]);
    if (refused.length > 0) return false;
    tx.signal(deltaOf(turn, delta, end));
    return true;
  });
  if (!isStored) throw await notStored(store, turn_id, caller);
  return { offset: end };
});

/**
 * Why text is not stored: the turn has ended meanwhile, or the text does not continue the answer. Text
 * that does, from `tooLongFrom`, would end beyond the longest answer.
 */
function notStored(store: Store, id: number, caller: AgentCaller, tooLongFrom?: number) {
  return store.read(async (tx) => {
    const { message_id } = await claimedTurn(tx, id, caller);
    const offset = await tx.streamedBytes(message_id ?? 0);
    if (offset === tooLongFrom) {
      return failure("payload_too_large", `an answer has at most ${MAX_ANSWER_BYTES} bytes`);
    }
    const why = `the answer has ${offset} bytes: the text must begin there`;
    return failure("conflict", why, { offset });
  });
}

turns.write(operations.setTurnStatus, async (tx, { caller, externalTurns }, { turn_id, text }) => {
  externalTurns.seen(caller.account);
  const turn = await claimedTurn(tx, turn_id, caller);
  await tx.renewLeases(EXTERNAL_NODE, [turn_id], EXTERNAL_LEASE_MS);
  const params = { message_id: turn.message_uuid ?? "", text };
  tx.signal(transient("events.turnStatus", params, { conversation: turn.conversation_uuid }));
});

turns.write(operations.finishTurn, async (tx, { caller, externalTurns }, input) => {
  const { turn_id, usage = null } = input;
  externalTurns.seen(caller.account);
  const turn = await claimedTurn(tx, turn_id, caller);
  const isBlank = (await tx.streamed(turn.message_id ?? 0)).trim() === "";
  const error = errorOf(input, isBlank);
  const ending: Ending = error ? { status: "failed", error } : { status: "complete" };
  await endTurn(tx, turn_id, { ...ending, usage }, EXTERNAL_NODE);
});

turns.write(operations.stopAgentTurn, async (tx, { caller }, { message_id }) => {
  const { turn } = await controlledTurn(tx, message_id, caller);
  if (turn.status !== "running") throw conflict("the turn has already finished");
  await stopTurns(tx, [turn]);
});

turns.write(operations.retryAgentTurn, async (tx, { caller }, { message_id }) => {
  const { turn, conversation } = await controlledTurn(tx, message_id, caller);
  checkWritable(conversation);
  await checkMayAsk(tx, turn.agent, caller.account);
  if (turn.status === "running") throw conflict("the turn is still running");
  if (turn.trigger_deleted) throw notFound("message that triggered the turn");
  const agents = await tx.conversationAgents(turn.conversation_id);
  const member = agents.find(({ account }) => account.id === turn.agent.id);
  if (!member) throw conflict("the agent is no longer in this conversation");
  const open = await tx.openTurns(turn.conversation_id);
  const ofAgent = open.filter(({ agent }) => agent.id === turn.agent.id);
  const waiting = ofAgent.filter(({ status }) => status === "waiting");
  if (waiting.some((each) => !each.open_ended && each.trigger_uuid === turn.trigger_uuid)) {
    throw conflict("a retry of this turn is already waiting");
  }
  if (waiting.length >= member.waiting_turns) {
    throw conflict("too many turns of this agent are waiting in this conversation");
  }
  await tx.queueTurn({
    agent_id: turn.agent.id,
    conversation_id: turn.conversation_id,
    trigger_uuid: turn.trigger_uuid,
    open_ended: false,
    refusal: spendingRefusal(member, caller.account),
    most_waiting: member.waiting_turns,
    at: Date.now(),
  });
  tx.emit(turnsQueued([turn.agent]));
});

turns.read(operations.getTurn, async (tx, { caller }, { message_id }) => {
  const { message } = await visibleMessage(tx, message_id, caller);
  const turn = await tx.turnOfMessage(message);
  if (!turn) throw notFound("turn");
  return receiptOf(turn, await tx.toolCallsOf([message.id]), message_id, caller);
});

/** Why the turn failed, in the program's own words if it says why; null if it has not failed. */
function errorOf(
  { status, error: message }: { status: "complete" | "failed"; error?: string | undefined },
  isBlank: boolean,
): Ending["error"] | null {
  const code = "agent_failed";
  if (status === "failed") {
    return message ? { code, message } : { code, parameters: { reason: "failed" } };
  }
  // An empty message would leave people without an answer, an error or a way to retry.
  return isBlank ? { code, parameters: { reason: "empty_answer" } } : null;
}

/** A turn that a program of the calling agent has claimed and that has not ended. */
async function claimedTurn(tx: ReadTx, id: number, { account }: AgentCaller): Promise<TurnRecord> {
  const turn = await tx.turn(id);
  if (turn?.agent.id !== account.id) throw notFound("turn");
  if (turn.status === "waiting") throw conflict("the turn is not claimed");
  if (turn.status !== "running" || turn.node !== EXTERNAL_NODE) {
    throw conflict("the turn has ended");
  }
  return turn;
}

/** The turn of an agent's message, if the caller may stop and retry it. */
async function controlledTurn(tx: ReadTx, messageId: string, caller: Caller) {
  const { message, conversation } = await visibleMessage(tx, messageId, caller);
  const turn = await tx.turnOfMessage(message);
  if (!turn) throw notFound("turn");
  if (mayControlTurn(caller.account, turn, conversation)) return { turn, conversation };
  const who = "the agent's owner, the person who triggered it or the group's admin";
  throw forbidden(`only ${who} may do this`);
}

function receiptOf(
  turn: TurnRecord,
  calls: readonly ToolCallRecord[],
  message_id: string,
  { account }: Caller,
): TurnReceipt {
  const isOwner = turn.agent.owner_id === account.id;
  const { started_at, first_token_at, finished_at } = turn;
  const since = (moment: number | null) =>
    moment === null || started_at === null ? null : moment - started_at;
  return {
    message_id,
    conversation_id: turn.conversation_uuid,
    agent: publicAccount(turn.agent),
    triggered_by: turn.trigger_uuid,
    model: turn.model,
    status: turn.status === "waiting" || turn.status === "running" ? "streaming" : turn.status,
    error: turn.error,
    context_ids: [...turn.context_ids],
    tries: turn.tries,
    started_at: isoOrNull(started_at ?? 0) ?? "",
    finished_at: isoOrNull(finished_at),
    first_token_ms: since(first_token_at),
    duration_ms: since(finished_at),
    usage: isOwner ? turn.usage : null,
    rounds: turn.rounds.map(({ duration_ms, usage }, round) => ({
      duration_ms,
      usage: isOwner ? usage : null,
      calls: calls.filter((call) => call.round === round).map(receiptCall),
    })),
  };
}

const receiptCall = (call: ToolCallRecord) => ({
  ...shownToolCall(call),
  duration_ms:
    call.started_at === null || call.finished_at === null
      ? null
      : call.finished_at - call.started_at,
});
