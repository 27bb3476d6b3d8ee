import type { Message, Turn, TurnError, TurnFacts } from "@parley/protocol";
import { turnError } from "@parley/protocol/text/turn-sentences";
import {
  counted,
  type DurableChange,
  messageChanged,
  messageDelta,
  type TransientChange,
  transient,
} from "../changes/change.ts";
import { type AccountRecord, NOBODY, publicAccount } from "../rules/accounts.ts";
import { isExternal } from "../rules/agents.ts";
import { addUsage, totalUsage } from "../rules/budget.ts";
import { type Dispatched, dispatch } from "../rules/dispatch.ts";
import { estimateTokens } from "../rules/token-estimate.ts";
import type { ConversationAgent } from "../store/agents.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { WriteTx } from "../store/store.ts";
import type { FinishedTurn, TurnRecord, TurnRound } from "../store/turns.ts";
import { endArchives } from "./chat-states.ts";
import { mentionsIn } from "./messages.ts";
import { endOpenCalls } from "./tool-calls.ts";

/** Different handles of an agent's answer that are looked up as mentions: the first ones. */
const MENTIONS_PER_ANSWER = 100;

/** Queues a turn for each agent that answers a new message, in the message's unit of work. */
export async function queueTurns(
  tx: WriteTx,
  conversation: ConversationRecord,
  message: Message,
  sender: AccountRecord,
): Promise<void> {
  const agents = await tx.conversationAgents(conversation.id);
  const asked = dispatch({ sender, mentions: message.mentions }, conversation, agents);
  const answering = await withoutBlockers(tx, asked, agents, sender);
  for (const { agent_id, refusal, waiting_turns } of answering) {
    await tx.queueTurn({
      agent_id,
      conversation_id: conversation.id,
      trigger_uuid: message.id,
      open_ended: true,
      refusal,
      most_waiting: waiting_turns,
      at: Date.now(),
    });
  }
  const ids = answering.map(({ agent_id }) => agent_id);
  const queued = agents.filter(({ account }) => ids.includes(account.id));
  if (queued.length > 0) tx.emit(turnsQueued(queued.map(({ account }) => account)));
}

/** Turns of these agents wait to be run. */
export function turnsQueued(agents: readonly AccountRecord[]): DurableChange {
  const external = agents.filter(isExternal).map(({ username }) => username);
  return { kind: "turns_queued", ...(external.length > 0 && { agents: external }) };
}

/** Agents do not answer people whom their owner blocked. */
async function withoutBlockers(
  tx: WriteTx,
  asked: readonly Dispatched[],
  agents: readonly ConversationAgent[],
  { id }: AccountRecord,
): Promise<readonly Dispatched[]> {
  const owners = new Map(agents.map(({ account }) => [account.id, account.owner_id ?? id]));
  const others = asked.map(({ agent_id }) => owners.get(agent_id) ?? id);
  if (others.every((owner) => owner === id)) return asked;
  const blockers = await tx.blockersAmong(others, [id]);
  return asked.filter(({ agent_id }) => !blockers.includes(owners.get(agent_id) ?? id));
}

/**
 * Drops the waiting turns that answer or continue deleted messages, except turns that answer other
 * messages too.
 */
export async function dropTurnsOf(
  tx: WriteTx,
  conversation: Pick<ConversationRecord, "id" | "agent_count">,
  messageIds: readonly string[],
): Promise<void> {
  if (conversation.agent_count === 0) return;
  const dropped = (await tx.openTurns(conversation.id)).filter(
    ({ status, folded, trigger_uuid, continues_uuid }) =>
      status === "waiting" &&
      ((!folded && messageIds.includes(trigger_uuid)) ||
        (continues_uuid !== null && messageIds.includes(continues_uuid))),
  );
  await dropTurns(tx, dropped);
}

/** Drops waiting turns. Calls that they were to make are not made. */
async function dropTurns(tx: WriteTx, turns: readonly TurnRecord[]): Promise<void> {
  for (const turn of turns) {
    if (turn.continues_uuid !== null) await endOpenCalls(tx, turn, "stopped");
  }
  await tx.dropTurns(turns.map(({ id }) => id));
}

/** Starts a claimed turn. Inserts its empty message unless it has one from an earlier run. */
export async function beginTurn(
  tx: WriteTx,
  turn: TurnRecord,
  conversation: ConversationRecord,
  model: string,
): Promise<string> {
  const at = Date.now();
  tx.signal(typingOf(turn, true));
  if (turn.message_uuid !== null) {
    await tx.beginTurn(turn.id, { messageUuid: turn.message_uuid, model, at });
    return turn.message_uuid;
  }
  const started: Turn = {
    status: "streaming",
    triggered_by: turn.trigger_uuid,
    model,
    error: null,
    usage: null,
    ...(turn.continues_uuid !== null && { continues: turn.continues_uuid }),
  };
  const message = await tx.insertMessage({
    conversation,
    sender: turn.agent,
    content: "",
    client_msg_id: null,
    reply_to_id: null,
    mentions: [],
    turn: started,
    at,
  });
  if (!message) throw new Error("turn message was not inserted");
  await tx.beginTurn(turn.id, { messageUuid: message.id, model, at });
  const stream = { message: message.id, from: 0, to: 0, begins: true, ends: false };
  tx.emit(counted("events.messageNew", message, conversation.uuid, message.seq, { stream }));
  await endArchives(tx, conversation, turn.agent);
  return message.id;
}

export interface Ending {
  status: FinishedTurn["status"];
  /** The full streamed text if the caller has it; otherwise it is read from the stored chunks. */
  content?: string;
  error?: TurnFacts | TurnError;
  usage?: Turn["usage"];
  /** The calls of the model, if the caller knows them; otherwise those that are stored. */
  rounds?: readonly TurnRound[];
}

/**
 * Ends a running turn. Does nothing if it has already ended or, given a `runner`, if another node
 * has taken it over.
 */
export async function endTurn(tx: WriteTx, id: number, ending: Ending, runner?: string) {
  const turn = await tx.turn(id);
  if (turn?.status !== "running" || turn.message_id === null || turn.message_uuid === null) return;
  if (runner !== undefined && turn.node !== runner) return;
  const { status } = ending;
  const error = ending.error ? turnError(ending.error) : null;
  const stored = await tx.streamed(turn.message_id);
  const streamed = ending.content ?? stored;
  const content = streamed === "" && error ? error.message : streamed;
  const mentions =
    streamed === ""
      ? []
      : await mentionsIn(tx, streamed, turn.conversation_id, turn.agent, MENTIONS_PER_ANSWER);
  const unsent = content.startsWith(stored) ? content.slice(stored.length) : "";
  if (unsent !== "") tx.signal(deltaOf(turn, unsent, Buffer.byteLength(content)));
  const at = Date.now();
  if (ending.rounds) await tx.setRounds(turn.id, ending.rounds);
  const ended = await endOpenCalls(tx, turn, status);
  // While its tools run, a turn does not ask the model.
  const usage =
    ending.usage ?? (ended > 0 ? totalUsage(turn.rounds) : estimatedUsage(turn, streamed, status));
  const seq = await tx.finishTurn(turn, { status, content, mentions, error, usage, at });
  const [message] = await tx.messageViews([turn.message_uuid], NOBODY);
  if (message) {
    const to = Buffer.byteLength(message.content);
    const stream = { message: message.id, from: 0, to, begins: false, ends: true };
    tx.emit(messageChanged("events.messageComplete", message, seq, stream));
  }
  tx.signal(typingOf(turn, false));
  tx.emit({ kind: "turns_ended", turns: [{ id: turn.id, node: turn.node }] });
  // The agent's next turn in the conversation can be claimed now.
  if (isExternal(turn.agent)) tx.emit(turnsQueued([turn.agent]));
}

/** What a provider charges for the calls that have ended, and for one that is broken off. */
function estimatedUsage(
  { agent, reserved, estimated_input, charged_input, rounds }: TurnRecord,
  streamed: string,
  status: FinishedTurn["status"],
): Turn["usage"] {
  // Only the program knows what its answer has cost, if anything.
  if (isExternal(agent)) return null;
  const isCharged = streamed !== "" || (status === "stopped" && reserved > 0);
  const earlier = totalUsage(rounds);
  // The provider refused the call that is broken off, and was to be asked again.
  if (!isCharged || charged_input === 0) return earlier;
  const output_tokens = streamed === "" ? 0 : estimateTokens(streamed);
  const last = { input_tokens: charged_input ?? estimated_input, output_tokens };
  return earlier ? addUsage(earlier, last) : last;
}

/** Ends the running turns among these and drops the waiting ones. */
export async function stopTurns(tx: WriteTx, turns: readonly TurnRecord[]) {
  const running = turns.filter(({ status }) => status === "running");
  const waiting = turns.filter(({ status }) => status === "waiting");
  for (const { id } of running) await endTurn(tx, id, { status: "stopped" });
  await dropTurns(tx, waiting);
  return { stopped: running.length, cancelled: waiting.length };
}

/** Stops the turns of some of the agents in a conversation. */
export async function stopTurnsOf(
  tx: WriteTx,
  conversationId: number,
  isTheirs: (agent: AccountRecord) => boolean,
) {
  const open = await tx.openTurns(conversationId);
  const theirs = open.filter(({ agent }) => isTheirs(agent));
  return stopTurns(tx, theirs);
}

/** The event for new text of an answer. `offset` is the length of the message in bytes after it. */
export const deltaOf = (
  { message_uuid, message_seq, conversation_uuid }: TurnRecord,
  delta: string,
  offset: number,
): TransientChange =>
  messageDelta(message_uuid ?? "", conversation_uuid, delta, offset, message_seq ?? undefined);

function typingOf({ agent, conversation_uuid }: TurnRecord, is_typing: boolean): TransientChange {
  const actor = publicAccount(agent);
  const params = { conversation_id: conversation_uuid, actor, is_typing };
  return transient("events.typing", params, { conversation: conversation_uuid });
}
