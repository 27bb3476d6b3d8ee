import { transient } from "../../changes/change.ts";
import type { Provider } from "../../config.ts";
import { APPROVAL_MS, addToolCall, changeToolCall } from "../../domain/tool-calls.ts";
import type { ToolResultPart } from "../../rules/model-content.ts";
import { needsApproval } from "../../rules/tool-calls.ts";
import { resultText } from "../../rules/tool-context.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { Store, WriteTx } from "../../store/store.ts";
import type { NewToolCall, ToolCallRecord } from "../../store/tool-calls.ts";
import type { TurnRecord, TurnRound } from "../../store/turns.ts";
import type { ContextFiles } from "../context-files/index.ts";
import type { AdmittedTurn } from "../prepare-turn.ts";
import type { ToolUseEvent } from "../providers/adapter.ts";
import { type BuiltInResult, runBuiltIn } from "./built-in.ts";
import type { OfferedTool } from "./offered.ts";
import type { Elicit, ToolServers } from "./servers.ts";

export interface CallServices {
  readonly node: string;
  readonly store: Store;
  readonly config: { readonly limits: { readonly image_pixels: number } };
  readonly contextFiles: ContextFiles;
  readonly toolServers: ToolServers;
  /** Asks the owner for what a tool needs to know, in the conversation. */
  readonly elicit: (call: ToolCallRecord, signal: AbortSignal) => Elicit;
}

/** The turn that makes calls. */
export interface CallingTurn {
  readonly turn: TurnRecord;
  readonly agent: AgentRecord;
  readonly provider: Provider;
  readonly signal: AbortSignal;
}

/** The calls that the model asked for in one round. */
export interface AskedRound {
  readonly uses: readonly ToolUseEvent[];
  readonly offered: ReadonlyMap<string, OfferedTool>;
  /** Whether the conversation is the owner's own with the agent. */
  readonly isDirect: boolean;
  /** The length in bytes of what the agent has written so far. */
  readonly text_bytes: number;
  /** The number of calls of earlier rounds. */
  readonly earlier: number;
  /** The rounds so far, this one included. */
  readonly rounds: readonly TurnRound[];
}

/** Stores the calls of a round. Those that need no approval are `running`: nobody else makes them. */
export function storeCalls(
  { store, node }: CallServices,
  { turn, agent }: CallingTurn,
  round: AskedRound,
): Promise<ToolCallRecord[] | null> {
  return store.write(async (tx) => {
    const current = await tx.turn(turn.id);
    if (current?.status !== "running" || current.node !== node) return null;
    const { message_id, message_uuid, conversation_id, conversation_uuid } = current;
    if (message_id === null || message_uuid === null) return null;
    const calls = round.uses.map(
      (use, place): NewToolCall => ({
        ...newCall(use, round),
        uuid: Bun.randomUUIDv7(),
        message_id,
        conversation_id,
        agent_id: agent.account.id,
        owner_id: agent.owner.id,
        round: round.rounds.length - 1,
        position: round.earlier + place,
        text_bytes: round.text_bytes,
      }),
    );
    for (const call of calls) await addToolCall(tx, call, { message_uuid, conversation_uuid });
    await tx.noteRounds(turn.id, round.rounds);
    const stored = await tx.toolCallsOf([message_id]);
    return stored.slice(round.earlier);
  });
}

function newCall(use: ToolUseEvent, { offered, isDirect }: AskedRound) {
  const now = Date.now();
  const tool = offered.get(use.name);
  const wrong = wrongUse(use, tool);
  const asks = tool !== undefined && needsApproval(tool.policy, isDirect);
  const status = wrong !== null ? "failed" : asks ? "pending" : "running";
  return {
    model_id: use.id,
    server_id: tool?.server_id ?? null,
    server: tool?.server ?? "",
    tool: tool?.tool ?? use.name,
    title: tool?.title ?? use.name,
    arguments: use.input ?? {},
    status,
    error: wrong,
    created_at: now,
    started_at: status === "running" ? now : null,
    finished_at: status === "failed" ? now : null,
    expires_at: status === "pending" ? now + APPROVAL_MS : null,
  } as const;
}

/** Why a call cannot be made at all; null if it can. */
function wrongUse({ input }: ToolUseEvent, tool: OfferedTool | undefined): string | null {
  if (!tool) return "There is no such tool.";
  return input === null ? "The arguments are not a JSON object." : null;
}

/** Makes the calls among these that run, at the same time, and returns what the model is told. */
export async function makeCalls(
  services: CallServices,
  place: CallingTurn,
  calls: readonly ToolCallRecord[],
): Promise<CallResults> {
  const running = calls.filter(({ status }) => status === "running");
  if (running.length > 0) await showStatus(services, place, running);
  const results = await Promise.all(
    calls.map((call) =>
      call.status === "running" ? makeCall(services, place, call) : resultOf(call),
    ),
  );
  if (running.length > 0) await showStatus(services, place, []);
  return {
    parts: results.map(({ part }) => part),
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** What the model is told about calls. */
export interface CallResults {
  readonly parts: readonly ToolResultPart[];
  /** Estimated, of pictures and documents among them. */
  readonly tokens: number;
}

/** Tells people what the agent does right now. */
function showStatus(
  { store }: CallServices,
  { turn }: CallingTurn,
  calls: readonly ToolCallRecord[],
): Promise<void> {
  const { message_uuid, conversation_uuid } = turn;
  const titles = [...new Set(calls.map(({ title }) => title))].join(", ");
  const text = titles === "" ? "" : `Using ${titles}`;
  const params = { message_id: message_uuid ?? "", text };
  const status = transient("events.turnStatus", params, { conversation: conversation_uuid });
  return store.note((tx) => tx.signal(status));
}

async function makeCall(
  services: CallServices,
  place: CallingTurn,
  call: ToolCallRecord,
): Promise<CallResult> {
  const result = await performed(services, place, call);
  place.signal.throwIfAborted();
  const ended = await services.store.write((tx) => endCall(tx, call, result));
  return resultOf(ended ?? call, result);
}

function performed(
  services: CallServices,
  { turn, provider, signal }: CallingTurn,
  call: ToolCallRecord,
): Promise<BuiltInResult> {
  const { server_id, tool, owner_id } = call;
  if (server_id === null) {
    return runBuiltIn(services, { turn, owner_id, provider, signal }, tool, call.arguments);
  }
  const elicit = services.elicit(call, signal);
  const given = { ...call.arguments };
  return services.toolServers.call(owner_id, { server_id, tool }, given, { signal, elicit });
}

/** Stores the outcome, unless the call was ended meanwhile. */
async function endCall(
  tx: WriteTx,
  { uuid }: ToolCallRecord,
  { text, is_error }: BuiltInResult,
): Promise<ToolCallRecord | null> {
  const call = await tx.toolCall(uuid);
  if (call?.status !== "running") return call;
  const finished_at = Date.now();
  const safe = text.toWellFormed().replaceAll("\0", "\ufffd");
  await changeToolCall(
    tx,
    call,
    is_error
      ? { status: "failed", error: safe, finished_at }
      : { status: "done", result: safe, finished_at },
  );
  return tx.toolCall(uuid);
}

interface CallResult {
  readonly part: ToolResultPart;
  readonly tokens: number;
}

function resultOf(call: ToolCallRecord, result?: BuiltInResult): CallResult {
  const { parts = [], tokens = 0 } = result ?? {};
  const content = [{ type: "text" as const, text: resultText(call) }, ...parts];
  const is_error = call.status !== "done";
  return {
    part: { type: "tool_result", tool_use_id: call.model_id, content, is_error },
    tokens,
  };
}

/** Whether the turn is to make calls that nobody approved: somebody asked for them with a button. */
export async function hasRequestedCalls(
  { store }: CallServices,
  { turn: { continues_uuid } }: CallingTurn,
): Promise<boolean> {
  if (continues_uuid === null) return false;
  return store.read(async (tx) => {
    const message = await tx.message(continues_uuid);
    const calls = message ? await tx.toolCallsOf([message.id]) : [];
    return calls.some((call) => call.status === "running" && isRequested(call));
  });
}

/**
 * Makes the calls that the owner approved or a button asked for, before the turn that continues after
 * them asks the model. A call that an earlier process had begun is not made again, and neither is one
 * that a button asked for and that would need approval by now.
 */
export async function makeWaitingCalls(
  services: CallServices,
  place: CallingTurn & Pick<AdmittedTurn, "conversation">,
  offered: ReadonlyMap<string, OfferedTool>,
): Promise<void> {
  const { store, node } = services;
  const { continues_uuid } = place.turn;
  if (continues_uuid === null) return;
  const isDirect = place.conversation.kind === "direct";
  const isRefused = (call: ToolCallRecord) =>
    isRequested(call) && !isAllowed(call, offered, isDirect);
  const waiting = await store.write(async (tx) => {
    const current = await tx.turn(place.turn.id);
    const message = await tx.message(continues_uuid);
    if (current?.status !== "running" || current.node !== node || !message) return [];
    const open = (await tx.toolCallsOf([message.id])).filter(({ status }) => status === "running");
    const ready = open.filter((call) => !isBegun(call) && !isRefused(call));
    const ended = { status: "failed", finished_at: Date.now() } as const;
    for (const call of open) {
      if (ready.includes(call)) await tx.startToolCall(call, Date.now());
      else
        await changeToolCall(tx, call, {
          ...ended,
          error: isBegun(call) ? "interrupted" : REFUSED,
        });
    }
    return ready;
  });
  await makeCalls(services, place, waiting);
}

const REFUSED = "The agent may not make this call any more.";

const isRequested = ({ decided_at }: ToolCallRecord) => decided_at === null;

/** Whether the agent may make the call without approval. */
const isAllowed = (
  call: ToolCallRecord,
  offered: ReadonlyMap<string, OfferedTool>,
  isDirect: boolean,
): boolean =>
  [...offered.values()].some(
    (tool) =>
      tool.server_id === call.server_id &&
      tool.tool === call.tool &&
      !needsApproval(tool.policy, isDirect),
  );

const isBegun = ({ started_at }: ToolCallRecord) => started_at !== null;
