import type { File, Message } from "@parley/protocol";
import type { Config, Provider } from "../config.ts";
import { type Allowance, allowance, MIN_ANSWER_TOKENS } from "../rules/budget.ts";
import { type ModelContext, modelContext } from "../rules/context.ts";
import { refusalError } from "../rules/dispatch.ts";
import { keySourceOf } from "../rules/keys.ts";
import { toolTokens } from "../rules/token-estimate.ts";
import { continuedMessages } from "../rules/tool-context.ts";
import { NOBODY } from "../store/accounts.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { ReadTx, Store, WriteTx } from "../store/store.ts";
import type { ToolCallRecord } from "../store/tool-calls.ts";
import type { TurnRecord } from "../store/turns.ts";
import type { TurnFiles } from "./context-files/index.ts";
import { keyMissing } from "./keys.ts";
import { definitionOf, type OfferedTool } from "./tools/offered.ts";
import { interrupted, overBudget, TurnFailed } from "./turn-failed.ts";

/** The newest messages that are read for the context. The token budget keeps fewer. */
const MAX_CONTEXT_MESSAGES = 400;
/** How many messages after the context are searched for answers to messages in it. */
const MAX_LATER_MESSAGES = 1000;
/** Files of messages that arrive while files are loaded are loaded too, but not endlessly. */
const MAX_LOADS = 3;

interface PrepareServices {
  node: string;
  store: Store;
  config: Config;
}

/** A turn that may call its provider. */
export interface AdmittedTurn {
  turn: TurnRecord;
  agent: AgentRecord;
  provider: Provider;
  conversation: ConversationRecord;
  /** Whether the operator's key pays. */
  by_operator: boolean;
}

/** The tools that the model may use, by the names by which it calls them. */
export type OfferedTools = ReadonlyMap<string, OfferedTool>;

export interface PreparedTurn extends Omit<AdmittedTurn, "conversation"> {
  context: ModelContext;
  tools: OfferedTools;
  files: TurnFiles;
  /** Whether the conversation is the owner's own with the agent. */
  isDirect: boolean;
  max_output_tokens: number;
}

/** A turn whose context has files that must be loaded first. */
interface IncompleteTurn {
  unloaded: readonly File[];
  provider: Provider;
}

/**
 * Checks that the turn may call its provider, builds its context and reserves its tokens. Null if
 * this node no longer runs the turn. Throws a `TurnFailed` if the provider must not be called. Files
 * are loaded between units of work, and the context is then built again: what was deleted meanwhile
 * is not in it.
 */
export async function prepareTurn(
  services: PrepareServices,
  id: number,
  files: TurnFiles,
  tools: OfferedTools,
): Promise<PreparedTurn | null> {
  const { image_pixels } = services.config.limits;
  for (let loads = 0; ; loads++) {
    const isLast = loads === MAX_LOADS;
    const prepared = await services.store.write((tx) =>
      prepare(tx, services, id, { files, tools, isLast }),
    );
    if (prepared === null || !("unloaded" in prepared)) return prepared;
    await files.load(prepared.unloaded, { ...prepared.provider, image_pixels });
  }
}

interface Materials {
  readonly files: TurnFiles;
  readonly tools: OfferedTools;
  /** Whether files that are not loaded yet are left out. */
  readonly isLast: boolean;
}

async function prepare(
  tx: WriteTx,
  services: PrepareServices,
  id: number,
  { files, tools, isLast }: Materials,
): Promise<PreparedTurn | IncompleteTurn | null> {
  const admitted = await admitTurn(tx, services, id);
  if (!admitted) return null;
  const { turn, agent, provider, conversation, by_operator } = admitted;
  const plan = await affordablePlan(tx, admitted, { loaded: files.loaded, tools });
  const { context, max_output_tokens } = plan;
  if (context.unloaded.length > 0 && !isLast) return { unloaded: context.unloaded, provider };
  await tx.reserveTurn(turn, {
    spent_tokens: 0,
    input_tokens: context.input_tokens,
    output_tokens: max_output_tokens,
    context_ids: context.ids,
    by_operator,
  });
  const isDirect = conversation.kind === "direct";
  return {
    turn,
    agent,
    provider,
    by_operator,
    context,
    tools: plan.tools,
    files,
    isDirect,
    max_output_tokens,
  };
}

/** What the model is asked, and with which tools. They are left out if the limits do not allow them. */
async function affordablePlan(
  tx: WriteTx,
  admitted: AdmittedTurn,
  source: Pick<ContextSource, "loaded" | "tools">,
): Promise<Pick<PreparedTurn, "context" | "tools" | "max_output_tokens">> {
  const { turn } = admitted;
  const { tools } = source;
  const context = await buildContext(tx, { ...admitted, ...source });
  // A turn that continues goes on with the results of calls, which were made.
  if (turn.trigger_deleted && turn.continues_uuid === null && !context.isAsked) {
    throw interrupted("message_deleted");
  }
  const allowed = await allowTokens(tx, admitted, { spent_tokens: 0, ...context });
  if (!("refusal" in allowed)) return { context, tools, max_output_tokens: allowed.output_tokens };
  // Providers reject calls in the context if there are no tools.
  if (tools.size === 0 || turn.continues_uuid !== null) {
    throw overBudget(allowed.refusal);
  }
  return affordablePlan(tx, admitted, { ...source, tools: NO_TOOLS });
}

const NO_TOOLS: OfferedTools = new Map();

/**
 * The turn, if this node runs it and it may call its provider; null if this node no longer runs it.
 * Throws a `TurnFailed` if the provider must not be called.
 */
export async function admitTurn(
  tx: ReadTx,
  { node, config }: Pick<PrepareServices, "node" | "config">,
  id: number,
): Promise<AdmittedTurn | null> {
  const turn = await tx.turn(id);
  if (turn?.status !== "running" || turn.node !== node) return null;
  if (turn.refusal !== null) throw new TurnFailed(refusalError(turn.refusal));
  const agent = await tx.agent(turn.agent.id);
  const provider = config.providers.get(turn.agent.provider ?? "");
  const conversation = await tx.conversation(turn.conversation_uuid, turn.agent.id);
  if (!agent || !provider || !conversation) {
    throw new TurnFailed({ code: "provider_unavailable", parameters: { reason: "not_offered" } });
  }
  if (agent.account.erased_at !== null) {
    throw interrupted("agent_deleted");
  }
  if (agent.owner.suspended_at !== null) {
    throw new TurnFailed({ code: "agent_suspended" });
  }
  const keySource = keySourceOf(agent, config);
  if (keySource === null) throw keyMissing();
  return { turn, agent, provider, conversation, by_operator: keySource === "operator" };
}

/**
 * Reserves the tokens of the next call of the model, which is made with the same key, and returns the
 * longest answer that the limits allow. Null if this node no longer runs the turn. Throws a
 * `TurnFailed` if the limits are used up.
 */
export function reserveRound(
  services: PrepareServices,
  { turn: { id }, context, by_operator }: PreparedTurn,
  needed: Omit<NeededTokens, "file_tokens">,
): Promise<number | null> {
  return services.store.write(async (tx) => {
    const admitted = await admitTurn(tx, services, id);
    if (!admitted) return null;
    const { provider } = admitted;
    if (needed.input_tokens + MIN_ANSWER_TOKENS > provider.context_tokens) throw tooLong();
    const paid = { ...admitted, by_operator };
    const allowed = await allowTokens(tx, paid, { ...needed, file_tokens: 0 });
    if ("refusal" in allowed) throw overBudget(allowed.refusal);
    const { output_tokens } = allowed;
    const context_ids = context.ids;
    await tx.reserveTurn(admitted.turn, { ...needed, output_tokens, context_ids, by_operator });
    return Math.min(output_tokens, provider.context_tokens - needed.input_tokens);
  });
}

const tooLong = () =>
  new TurnFailed({ code: "context_too_long", parameters: { reason: "tool_results" } });

interface ContextSource {
  readonly turn: TurnRecord;
  readonly agent: AgentRecord;
  readonly provider: Provider;
  readonly conversation: ConversationRecord;
  readonly loaded: TurnFiles["loaded"];
  readonly tools: OfferedTools;
}

async function buildContext(
  tx: ReadTx,
  { turn, agent, provider, conversation, loaded, tools }: ContextSource,
): Promise<ModelContext> {
  const upTo = await lastContextSeq(tx, turn, conversation);
  const visible = await tx.contextMessages({
    conversationId: conversation.id,
    viewerId: agent.owner.id,
    upTo,
    answers: {
      agentId: turn.agent.id,
      upTo: upTo + MAX_LATER_MESSAGES,
      toBefore: turn.trigger_seq,
    },
    limit: MAX_CONTEXT_MESSAGES,
  });
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
    files: loaded,
    context_tokens: provider.context_tokens,
    max_output_tokens: provider.max_output_tokens,
  });
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

/**
 * The context of a turn that continues ends with the message that it continues: other turns answer
 * what came after it. Otherwise it ends before the next message that has a waiting turn of the same
 * agent.
 */
export async function lastContextSeq(
  tx: ReadTx,
  turn: TurnRecord,
  conversation: ConversationRecord,
): Promise<number> {
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

/** The tokens that a call of the model needs. */
interface NeededTokens {
  /** What earlier calls of the turn have used. */
  readonly spent_tokens: number;
  /** Estimated. */
  readonly input_tokens: number;
  /** The part of it that is for the contents of files. */
  readonly file_tokens: number;
}

/** The longest answer within the limits in force, or why they do not allow one. */
async function allowTokens(
  tx: WriteTx,
  { turn, agent, provider, by_operator }: AdmittedTurn,
  { spent_tokens, input_tokens, file_tokens }: NeededTokens,
): Promise<Allowance> {
  // Usage is settled on the day on which the turn started too.
  const startedAt = turn.started_at ?? Date.now();
  const operator_daily_tokens = (by_operator && provider.daily_tokens_per_user) || null;
  // What this turn has reserved is replaced by what it has spent.
  const own = spent_tokens - turn.reserved;
  // The owner's key may have paid for what it has reserved before.
  const ownByOperator = spent_tokens - (turn.by_operator ? turn.reserved : 0);
  const byOperator =
    operator_daily_tokens === null
      ? 0
      : ownByOperator +
        (await tx.operatorSpending(agent.owner.id, turn.agent.provider ?? "", startedAt));
  const spent = await tx.spending(agent.account.id, turn.conversation_id, startedAt);
  return allowance(
    { ...agent.limits, operator_daily_tokens },
    {
      today: spent.today + own,
      todayHere: spent.todayHere + own,
      // The first call of the model has counted the turn.
      turnsInMinute: turn.reserved > 0 ? 0 : spent.turnsInMinute,
      byOperator,
    },
    { input_tokens, file_tokens, max_output_tokens: provider.max_output_tokens, at: startedAt },
  );
}
