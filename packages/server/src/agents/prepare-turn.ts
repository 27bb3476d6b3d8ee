import type { File } from "@parley/protocol";
import type { Config, Provider } from "../config.ts";
import { grant } from "../rules/budget.ts";
import { type ModelContext, modelContext } from "../rules/context.ts";
import { OWNER_SUSPENDED } from "../rules/dispatch.ts";
import { keySourceOf } from "../rules/keys.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { ReadTx, Store, WriteTx } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";
import type { TurnFiles } from "./context-files/index.ts";
import { keyMissing } from "./keys.ts";
import { TurnFailed } from "./turn-failed.ts";

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

export interface PreparedTurn {
  turn: TurnRecord;
  agent: AgentRecord;
  provider: Provider;
  context: ModelContext;
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
): Promise<PreparedTurn | null> {
  const { image_pixels } = services.config.limits;
  for (let loads = 0; ; loads++) {
    const isLast = loads === MAX_LOADS;
    const prepared = await services.store.write((tx) => prepare(tx, services, id, files, isLast));
    if (prepared === null || !("unloaded" in prepared)) return prepared;
    await files.load(prepared.unloaded, { ...prepared.provider, image_pixels });
  }
}

async function prepare(
  tx: WriteTx,
  { node, config }: PrepareServices,
  id: number,
  { loaded }: TurnFiles,
  isLast: boolean,
): Promise<PreparedTurn | IncompleteTurn | null> {
  const turn = await tx.turn(id);
  if (turn?.status !== "running" || turn.node !== node) return null;
  if (turn.refusal !== null) throw new TurnFailed("budget_exceeded", turn.refusal);
  const agent = await tx.agent(turn.agent.id);
  const provider = config.providers.get(turn.agent.provider ?? "");
  const conversation = await tx.conversation(turn.conversation_uuid, turn.agent.id);
  if (!agent || !provider || !conversation) {
    throw new TurnFailed(
      "provider_unavailable",
      "This agent's provider is no longer offered here.",
    );
  }
  if (agent.owner.suspended_at !== null) {
    throw new TurnFailed("budget_exceeded", OWNER_SUSPENDED);
  }
  const keySource = keySourceOf(agent, config);
  if (keySource === null) throw keyMissing();
  const context = await buildContext(tx, { turn, agent, provider, conversation, loaded });
  if (turn.trigger_deleted && !context.isAsked) {
    throw new TurnFailed("interrupted", "The message was deleted before it was answered.");
  }
  const by_operator = keySource === "operator";
  const call = { turn, agent, provider, context, by_operator };
  const max_output_tokens = await grantTokens(tx, call);
  if (context.unloaded.length > 0 && !isLast) return { unloaded: context.unloaded, provider };
  await tx.reserveTurn(turn, {
    input_tokens: context.input_tokens,
    output_tokens: max_output_tokens,
    context_ids: context.ids,
    by_operator,
  });
  return { turn, agent, provider, context, max_output_tokens };
}

interface ContextSource {
  readonly turn: TurnRecord;
  readonly agent: AgentRecord;
  readonly provider: Provider;
  readonly conversation: ConversationRecord;
  readonly loaded: TurnFiles["loaded"];
}

async function buildContext(
  tx: ReadTx,
  { turn, agent, provider, conversation, loaded }: ContextSource,
): Promise<ModelContext> {
  const upTo = await lastContextSeq(tx, turn, conversation);
  return modelContext({
    agent: agent.account,
    owner: agent.owner,
    operatorInstructions: provider.instructions ?? null,
    instructions: agent.instructions,
    conversation,
    participants: (await tx.members(conversation.id)).map(({ account }) => account),
    messages: await tx.contextMessages({
      conversationId: conversation.id,
      viewerId: agent.owner.id,
      upTo,
      answers: {
        agentId: turn.agent.id,
        upTo: upTo + MAX_LATER_MESSAGES,
        toBefore: turn.trigger_seq,
      },
      limit: MAX_CONTEXT_MESSAGES,
    }),
    files: loaded,
    context_tokens: provider.context_tokens,
    max_output_tokens: provider.max_output_tokens,
  });
}

/** The context ends before the next message that has a waiting turn of the same agent. */
async function lastContextSeq(
  tx: ReadTx,
  turn: TurnRecord,
  conversation: ConversationRecord,
): Promise<number> {
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

interface Call {
  readonly turn: TurnRecord;
  readonly agent: AgentRecord;
  readonly provider: Provider;
  readonly context: ModelContext;
  /** Whether the operator's key pays. */
  readonly by_operator: boolean;
}

/** The longest answer within the limits in force. Throws a `TurnFailed` if the request does not fit. */
async function grantTokens(tx: WriteTx, call: Call): Promise<number> {
  const { turn, agent, provider, context, by_operator } = call;
  // Usage is settled on the day on which the turn started too.
  const startedAt = turn.started_at ?? Date.now();
  const operator_daily_tokens = (by_operator && provider.daily_tokens_per_user) || null;
  const byOperator =
    operator_daily_tokens === null
      ? 0
      : await tx.operatorSpending(agent.owner.id, turn.agent.provider ?? "", startedAt);
  const spent = await tx.spending(agent.account.id, turn.conversation_id, startedAt);
  const granted = grant(
    { ...agent.limits, operator_daily_tokens },
    { ...spent, byOperator },
    { ...context, max_output_tokens: provider.max_output_tokens },
  );
  if ("refusal" in granted) throw new TurnFailed("budget_exceeded", granted.refusal);
  return granted.output_tokens;
}
