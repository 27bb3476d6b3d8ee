import type { Message } from "@parley/protocol";
import type { Provider } from "../../config/config.ts";
import { NOBODY } from "../../rules/accounts.ts";
import { type ModelContext, modelContext } from "../../rules/context.ts";
import { toolTokens } from "../../rules/token-estimate.ts";
import { continuedMessages } from "../../rules/tool-context.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { ConversationRecord } from "../../store/conversations.ts";
import type { ReadTx } from "../../store/store.ts";
import type { ToolCallRecord } from "../../store/tool-calls.ts";
import type { TurnRecord } from "../../store/turns.ts";
import type { TurnFiles } from "../context-files/index.ts";
import { definitionOf, type OfferedTools } from "../tools/offered.ts";

/** The newest messages that are read for the context of a model. The token budget keeps fewer. */
const MAX_CONTEXT_MESSAGES = 400;
/** How many messages after the context are searched for answers to messages in it. */
const MAX_LATER_MESSAGES = 1000;

/** Whose turn it is, and where. */
export interface TurnPlace {
  readonly turn: TurnRecord;
  readonly agent: AgentRecord;
  readonly conversation: ConversationRecord;
}

/** What the model of a turn is told. */
export async function readContext(
  tx: ReadTx,
  place: TurnPlace & { readonly provider: Provider; readonly files: TurnFiles },
  tools: OfferedTools,
): Promise<ModelContext> {
  const { turn, agent, provider, conversation, files } = place;
  const visible = await readMessages(tx, place, MAX_CONTEXT_MESSAGES, MAX_LATER_MESSAGES);
  const messages = await withContinued(tx, visible, turn);
  return modelContext({
    agent: agent.account,
    owner: agent.owner,
    operatorInstructions: provider.instructions ?? null,
    instructions: agent.instructions,
    conversation,
    participants: (await tx.members(conversation.id)).map(({ account }) => account),
    messages,
    continues: turn.continues_uuid,
    calls: await continuedCalls(tx, messages, turn),
    tool_tokens: toolTokens([...tools.values()].map(definitionOf)),
    files: files.loaded,
    context_tokens: provider.context_tokens,
    max_output_tokens: provider.max_output_tokens,
  });
}

/**
 * The newest messages up to the end of a turn's context that the agent's owner can see, newest first:
 * also cleared ones, unless the owner asks.
 * Answers to them are among these if at most `later` messages lie between.
 */
export async function readMessages(
  tx: ReadTx,
  { turn, agent, conversation }: TurnPlace,
  limit: number,
  later = 0,
): Promise<Message[]> {
  const upTo = await lastContextSeq(tx, turn, conversation);
  const isAskedByOwner = turn.trigger_sender_id === agent.owner.id;
  return tx.contextMessages({
    conversationId: conversation.id,
    viewerId: agent.owner.id,
    // For others, the agent knows what its owner has cleared.
    after: isAskedByOwner ? await tx.clearedSeq(conversation.id, agent.owner.id) : 0,
    upTo,
    answers: { agentId: turn.agent.id, upTo: upTo + later, toBefore: turn.trigger_seq },
    limit,
  });
}

/**
 * The context of a turn that continues ends with the message that it continues: other turns answer
 * what came after it. Otherwise it ends before the next message that has a waiting turn of the same
 * agent.
 */
async function lastContextSeq(tx: ReadTx, turn: TurnRecord, conversation: ConversationRecord) {
  if (turn.continues_seq !== null) return turn.continues_seq;
  if (!turn.open_ended) return turn.trigger_seq;
  const later = (await tx.openTurns(conversation.id)).filter(
    ({ agent, status, open_ended, trigger_seq }) =>
      agent.id === turn.agent.id &&
      status === "waiting" &&
      open_ended &&
      trigger_seq > turn.trigger_seq,
  );
  return Math.min(conversation.seq, ...later.map(({ trigger_seq }) => trigger_seq - 1));
}

/**
 * The messages, newest first, with those that the turn continues and the owner has hidden. A model that is
 * not told the results of its calls would ask for them again.
 */
async function withContinued(
  tx: ReadTx,
  messages: readonly Message[],
  { continues_uuid }: TurnRecord,
): Promise<Message[]> {
  const all = new Map(messages.map((message) => [message.id, message]));
  const seen = new Set<string>();
  for (let id = continues_uuid; id !== null && !seen.has(id); ) {
    seen.add(id);
    const [message] = all.has(id) ? [all.get(id)] : await tx.messageViews([id], NOBODY);
    // The text was hidden: the model gets the calls and their results alone.
    if (message && !all.has(id)) all.set(id, { ...message, content: "" });
    id = message?.turn?.continues ?? null;
  }
  if (all.size === messages.length) return [...messages];
  return [...all.values()].toSorted((one, other) => other.seq - one.seq);
}

/** The calls of the messages that the turn continues, by message. */
async function continuedCalls(
  tx: ReadTx,
  messages: readonly Message[],
  { continues_uuid }: TurnRecord,
): Promise<Map<string, ToolCallRecord[]>> {
  const uuids = [...continuedMessages(messages, continues_uuid)];
  const records = await Promise.all(uuids.map((uuid) => tx.message(uuid)));
  const ids = records.flatMap((record) => record?.id ?? []);
  return Map.groupBy(await tx.toolCallsOf(ids), ({ message_uuid }) => message_uuid);
}
