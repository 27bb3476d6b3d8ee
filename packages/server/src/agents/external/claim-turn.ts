import type { ClaimedTurn, Message, TurnRequest } from "@parley/protocol";
import { beginTurn, endTurn } from "../../domain/turns.ts";
import { EXTERNAL_LEASE_MS, EXTERNAL_NODE } from "../../rules/agents.ts";
import { allowance } from "../../rules/budget.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { ReadTx, WriteTx } from "../../store/store.ts";
import type { TurnRecord } from "../../store/turns.ts";
import { readMessages, type TurnPlace } from "../turn/read-context.ts";
import { interrupted, overBudget, TurnFailed } from "../turn-failed.ts";

const MAX_CONTEXT_MESSAGES = 100;
/** Of the contents of all messages together. The newest message is always included. */
const MAX_CONTEXT_BYTES = 131_072;

export type Claim =
  | { readonly kind: "claimed"; readonly turn: ClaimedTurn }
  | { readonly kind: "none" }
  /** Another unit owns the conversation: try again at once. */
  | { readonly kind: "busy" }
  /** The turn was refused or has ended: try again for the next one. */
  | { readonly kind: "refused" };

/** Claims a turn for a program of an external agent. A turn that its limits do not allow ends as failed. */
export async function claimTurn(
  tx: WriteTx,
  wanted: { agentId: number; turnId: number | null },
): Promise<Claim> {
  const { turn: claimed, busy } = await tx.claimExternalTurn(wanted, EXTERNAL_LEASE_MS);
  if (!claimed) return { kind: busy ? "busy" : "none" };
  const place = await placeOf(tx, claimed);
  const { agent, conversation } = place;
  const answer_id = await beginTurn(tx, claimed, conversation, agent.model ?? "");
  const turn = await tx.turn(claimed.id);
  if (!turn) throw new Error(`turn ${claimed.id} is gone`);
  const request = await requestOf(tx, { ...place, turn });
  const { context } = request;
  try {
    await checkAllowed(tx, turn, agent, context);
  } catch (error) {
    if (!(error instanceof TurnFailed)) throw error;
    await endTurn(tx, turn.id, { status: "failed", error: error.error }, EXTERNAL_NODE);
    return { kind: "refused" };
  }
  await tx.reserveTurn(turn, {
    // Counts the turn against the turns per minute; the program reports what it really uses.
    input_tokens: 1,
    spent_tokens: 0,
    output_tokens: 0,
    context_ids: context.map(({ id }) => id),
    by_operator: false,
  });
  await tx.setAttempt(turn.id, { tries: 1, input_tokens: null });
  return { kind: "claimed", turn: { ...request, answer_id } };
}

/** Hands out a claimed turn again that did not reach its program. Context and lease are new. */
export async function claimAgain(tx: WriteTx, id: number): Promise<Claim> {
  const turn = await tx.turn(id);
  const isOpen = turn?.status === "running" && turn.node === EXTERNAL_NODE;
  if (!isOpen || turn.message_uuid === null) return { kind: "refused" };
  await tx.renewLeases(EXTERNAL_NODE, [id], EXTERNAL_LEASE_MS);
  const request = await requestOf(tx, await placeOf(tx, turn));
  return { kind: "claimed", turn: { ...request, answer_id: turn.message_uuid } };
}

/** The turns that an agent can claim now, as its programs are told of them. */
export const requestedTurns = async (tx: ReadTx, agentId: number, most: number) =>
  Array.fromAsync(await tx.claimableTurns(agentId, most), async (turn) =>
    requestOf(tx, await placeOf(tx, turn)),
  );

async function placeOf(tx: ReadTx, turn: TurnRecord): Promise<TurnPlace> {
  const conversation = await tx.conversation(turn.conversation_uuid, turn.agent.id);
  const agent = await tx.agent(turn.agent.id);
  if (!conversation || !agent) throw new Error(`turn ${turn.id} has no agent or no conversation`);
  return { turn, agent, conversation };
}

/** Throws a `TurnFailed` if the program must not be asked. */
async function checkAllowed(
  tx: ReadTx,
  turn: TurnRecord,
  { account, owner, limits }: AgentRecord,
  context: readonly Message[],
): Promise<void> {
  if (owner.suspended_at !== null) throw new TurnFailed({ code: "agent_suspended" });
  if (turn.trigger_deleted && context.at(-1)?.sender.username === account.username) {
    throw interrupted("message_deleted");
  }
  const at = turn.started_at ?? Date.now();
  const spent = await tx.spending(account.id, turn.conversation_id, at);
  const budget = { ...limits, operator_daily_tokens: null };
  // What the answer will cost is not known: it is allowed until the limit is used up.
  const unknown = { input_tokens: 0, file_tokens: 0, max_output_tokens: 1, at };
  const allowed = allowance(budget, { ...spent, byOperator: 0 }, unknown);
  if ("refusal" in allowed) throw overBudget(allowed.refusal);
}

/** The newest messages that the agent's owner can see, oldest first, as for a model. */
async function contextOf(tx: ReadTx, place: TurnPlace): Promise<Message[]> {
  const newestFirst = await readMessages(tx, place, MAX_CONTEXT_MESSAGES);
  let bytes = 0;
  const beyond = newestFirst.findIndex((message, place) => {
    bytes += Buffer.byteLength(message.content);
    return place > 0 && bytes > MAX_CONTEXT_BYTES;
  });
  const kept = newestFirst.slice(0, beyond === -1 ? MAX_CONTEXT_MESSAGES : beyond);
  return kept.toReversed().map(withoutOwnReactions);
}

/** The owner's own reactions are not those of the agent. */
const withoutOwnReactions = (message: Message): Message => ({
  ...message,
  reactions: message.reactions.map((reaction) => ({ ...reaction, reacted: false })),
});

const requestOf = async (tx: ReadTx, place: TurnPlace): Promise<TurnRequest> => ({
  turn_id: place.turn.id,
  conversation_id: place.turn.conversation_uuid,
  message_id: place.turn.trigger_uuid,
  context: await contextOf(tx, place),
});
