import type { Provider } from "../../config/config.ts";
import { type Allowance, allowance, MIN_ANSWER_TOKENS } from "../../rules/budget.ts";
import type { ModelContext } from "../../rules/context.ts";
import { refusalError } from "../../rules/dispatch.ts";
import { keySourceOf } from "../../rules/keys.ts";
import type { ReadTx, Store, WriteTx } from "../../store/store.ts";
import type { ToolCallRecord } from "../../store/tool-calls.ts";
import type { ContextFiles, TurnFiles } from "../context-files/index.ts";
import type { Deltas } from "../deltas.ts";
import { type KeyServices, keyMissing } from "../keys.ts";
import type { Elicit } from "../tools/mcp-client.ts";
import type { OfferedTools } from "../tools/offered.ts";
import type { ToolServers } from "../tools/servers.ts";
import { interrupted, overBudget, TurnFailed } from "../turn-failed.ts";
import { readContext, type TurnPlace } from "./read-context.ts";

/** Files of messages that arrive while files are loaded are loaded too, but not endlessly. */
const MAX_LOADS = 3;

export interface TurnServices extends KeyServices {
  readonly node: string;
  readonly store: Store;
  readonly deltas: Deltas;
  readonly contextFiles: ContextFiles;
  readonly toolServers: ToolServers;
  /** Asks the owner for what a tool needs to know, in the conversation. */
  readonly elicit: (call: ToolCallRecord, signal: AbortSignal) => Elicit;
}

/** A turn that may call its provider, and everything that its steps need. */
export interface AdmittedTurn extends TurnPlace, TurnServices {
  readonly provider: Provider;
  /** Whether the operator's key pays. */
  readonly by_operator: boolean;
  readonly files: TurnFiles;
  readonly signal: AbortSignal;
}

export interface PreparedTurn extends AdmittedTurn {
  readonly context: ModelContext;
  /** What the model may use: none if the limits do not allow to describe them. */
  readonly tools: OfferedTools;
  readonly max_output_tokens: number;
}

/** The turn; null if this node no longer runs it. */
export async function runningTurn(tx: ReadTx, node: string, id: number) {
  const turn = await tx.turn(id);
  return turn?.status === "running" && turn.node === node ? turn : null;
}

/**
 * The turn, if this node runs it and it may call its provider; null if this node no longer runs it.
 * Throws a `TurnFailed` if the provider must not be called.
 */
export async function admitTurn<Services extends TurnServices>(
  tx: ReadTx,
  services: Services,
  id: number,
) {
  const { node, config } = services;
  const turn = await runningTurn(tx, node, id);
  if (!turn) return null;
  if (turn.refusal !== null) throw new TurnFailed(refusalError(turn.refusal));
  const agent = await tx.agent(turn.agent.id);
  const provider = config.providers.get(turn.agent.provider ?? "");
  const conversation = await tx.conversation(turn.conversation_uuid, turn.agent.id);
  if (!agent || !provider || !conversation) {
    throw new TurnFailed({ code: "provider_unavailable", parameters: { reason: "not_offered" } });
  }
  if (agent.account.erased_at !== null) throw interrupted("agent_deleted");
  if (agent.owner.suspended_at !== null) throw new TurnFailed({ code: "agent_suspended" });
  const keySource = keySourceOf(agent, config);
  if (keySource === null) throw keyMissing();
  const by_operator = keySource === "operator";
  return { ...services, turn, agent, provider, conversation, by_operator };
}

/**
 * Checks that the turn may call its provider, builds its context and reserves its tokens. Null if
 * this node no longer runs the turn. Throws a `TurnFailed` if the provider must not be called. Files
 * are loaded between units of work, and the context is then built again: what was deleted meanwhile
 * is not in it.
 */
export async function prepareTurn(
  place: AdmittedTurn,
  tools: OfferedTools,
): Promise<PreparedTurn | null> {
  const { image_pixels } = place.config.limits;
  for (let loads = 0; ; loads++) {
    // Files that are not loaded by then are left out.
    const isLast = loads === MAX_LOADS;
    const prepared = await place.store.write(async (tx) => {
      const admitted = await admitTurn(tx, place, place.turn.id);
      if (!admitted) return null;
      const plan = await affordablePlan(tx, admitted, tools);
      const { unloaded } = plan.context;
      if (unloaded.length > 0 && !isLast) return { unloaded, provider: admitted.provider };
      await reserve(tx, plan, { spent_tokens: 0, input_tokens: plan.context.input_tokens });
      return plan;
    });
    if (prepared === null || !("unloaded" in prepared)) return prepared;
    await place.files.load(prepared.unloaded, { ...prepared.provider, image_pixels });
  }
}

/** What the model is asked, and with which tools. They are left out if the limits do not allow them. */
async function affordablePlan(
  tx: WriteTx,
  admitted: AdmittedTurn,
  tools: OfferedTools,
): Promise<PreparedTurn> {
  const { turn } = admitted;
  const context = await readContext(tx, admitted, tools);
  // A turn that continues goes on with the results of calls, which were made.
  if (turn.trigger_deleted && turn.continues_uuid === null && !context.isAsked) {
    throw interrupted("message_deleted");
  }
  const allowed = await allowTokens(tx, admitted, { spent_tokens: 0, ...context });
  if (!("refusal" in allowed)) {
    return { ...admitted, context, tools, max_output_tokens: allowed.output_tokens };
  }
  // Providers reject calls in the context if there are no tools.
  if (tools.size === 0 || turn.continues_uuid !== null) throw overBudget(allowed.refusal);
  return affordablePlan(tx, admitted, new Map());
}

/**
 * Reserves the tokens of the next call of the model, which is made with the same key, and returns the
 * longest answer that the limits allow. Null if this node no longer runs the turn. Throws a
 * `TurnFailed` if the limits are used up.
 */
export function reserveRound(prepared: PreparedTurn, needed: NeededTokens): Promise<number | null> {
  const { store, turn, by_operator } = prepared;
  return store.write(async (tx) => {
    const admitted = await admitTurn(tx, prepared, turn.id);
    if (!admitted) return null;
    const { provider } = admitted;
    if (needed.input_tokens + MIN_ANSWER_TOKENS > provider.context_tokens) throw tooLong();
    const paid = { ...admitted, by_operator };
    const allowed = await allowTokens(tx, paid, { ...needed, file_tokens: 0 });
    if ("refusal" in allowed) throw overBudget(allowed.refusal);
    const { output_tokens } = allowed;
    await reserve(tx, { ...paid, max_output_tokens: output_tokens }, needed);
    return Math.min(output_tokens, provider.context_tokens - needed.input_tokens);
  });
}

const tooLong = () =>
  new TurnFailed({ code: "context_too_long", parameters: { reason: "tool_results" } });

const reserve = (
  tx: WriteTx,
  { turn, context, max_output_tokens, by_operator }: PreparedTurn,
  needed: NeededTokens,
) =>
  tx.reserveTurn(turn, {
    ...needed,
    output_tokens: max_output_tokens,
    context_ids: context.ids,
    by_operator,
  });

interface NeededTokens {
  /** What earlier calls of the turn have used. */
  readonly spent_tokens: number;
  /** Estimated. */
  readonly input_tokens: number;
}

/**
 * The longest answer within the limits in force, or why they do not allow one. `file_tokens` is the part
 * of the input that is for the contents of files.
 */
async function allowTokens(
  tx: WriteTx,
  { turn, agent, provider, by_operator }: AdmittedTurn,
  { spent_tokens, input_tokens, file_tokens }: NeededTokens & { file_tokens: number },
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
