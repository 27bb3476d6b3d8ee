import { transient } from "../../changes/change.ts";
import type { Provider } from "../../config.ts";
import { APPROVAL_MS, addToolCall, changeToolCall } from "../../domain/tool-calls.ts";
import { toolPermission } from "../../domain/tools.ts";
import type { Logger } from "../../observe/log.ts";
import type { ToolResultPart } from "../../rules/model-content.ts";
import { needsApproval } from "../../rules/tool-calls.ts";
import { resultText } from "../../rules/tool-context.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { Store, WriteTx } from "../../store/store.ts";
import type { ToolCallRecord } from "../../store/tool-calls.ts";
import type { TurnRecord, TurnRound } from "../../store/turns.ts";
import type { TurnFiles } from "../context-files/index.ts";
import type { ToolUse } from "../providers/adapter.ts";
import { type BuiltInResult, runBuiltIn } from "./built-in.ts";
import type { OfferedTool } from "./offered.ts";
import { boundedText, failedCall, REFUSED } from "./result-text.ts";
import type { CallPermission, Elicit, ToolResult, ToolServers } from "./servers.ts";

export interface CallServices {
  readonly node: string;
  readonly store: Store;
  readonly config: { readonly limits: { readonly image_pixels: number } };
  readonly toolServers: ToolServers;
  /** Asks the owner for what a tool needs to know, in the conversation. */
  readonly elicit: (call: ToolCallRecord, signal: AbortSignal) => Elicit;
  readonly log: Logger;
}

/** The turn that makes calls. */
export interface CallingTurn {
  readonly turn: TurnRecord;
  readonly agent: AgentRecord;
  readonly provider: Provider;
  readonly files: TurnFiles;
  readonly signal: AbortSignal;
}

/** The calls that the model asked for in one round. */
export interface AskedRound {
  readonly uses: readonly ToolUse[];
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
  { store, node, toolServers }: CallServices,
  { turn, agent }: CallingTurn,
  round: AskedRound,
): Promise<ToolCallRecord[] | null> {
  return store.write(async (tx) => {
    const current = await tx.turn(turn.id);
    if (current?.status !== "running" || current.node !== node) return null;
    const { message_id, message_uuid, conversation_id, conversation_uuid } = current;
    if (message_id === null || message_uuid === null) return null;
    for (const [place, use] of round.uses.entries()) {
      const tool = await permittedTool(tx, toolServers, agent, round.offered.get(use.name));
      const call = {
        ...newCall(use, tool, round.isDirect),
        uuid: Bun.randomUUIDv7(),
        message_id,
        conversation_id,
        agent_id: agent.account.id,
        owner_id: agent.owner.id,
        round: round.rounds.length - 1,
        position: round.earlier + place,
        text_bytes: round.text_bytes,
      };
      await addToolCall(tx, call, { message_uuid, conversation_uuid });
    }
    await tx.setRounds(turn.id, round.rounds);
    const stored = await tx.toolCallsOf([message_id]);
    return stored.slice(round.earlier);
  });
}

/** A tool that was offered, with what the agent may do with it now. */
interface PermittedTool extends OfferedTool {
  readonly isPermitted: boolean;
}

/** The tool and its grant may have changed since the tool was offered to the model. */
async function permittedTool(
  tx: WriteTx,
  toolServers: ToolServers,
  { account, owner }: AgentRecord,
  offered: OfferedTool | undefined,
): Promise<PermittedTool | undefined> {
  if (!offered || offered.server_id === null) return offered && { ...offered, isPermitted: true };
  const { server_id, tool } = offered;
  const wanted = { agent_id: account.id, owner_id: owner.id, server_id, tool };
  const permission = await toolPermission(tx, wanted, toolServers.operatorTools());
  return { ...offered, ...permission, isPermitted: permission !== null };
}

function newCall(use: ToolUse, tool: PermittedTool | undefined, isDirect: boolean) {
  const now = Date.now();
  const wrong = wrongUse(use, tool);
  const asks = tool !== undefined && needsApproval(tool.policy, isDirect);
  const status = wrong !== null ? "failed" : asks ? "pending" : "running";
  return {
    model_id: use.id,
    provider_fields: use.provider_fields ?? null,
    server_id: tool?.server_id ?? null,
    server: tool?.server ?? "",
    tool: tool?.tool ?? use.name,
    title: tool?.title ?? use.name,
    fingerprint: tool?.fingerprint ?? null,
    arguments: use.input ?? {},
    status,
    error: wrong,
    created_at: now,
    started_at: status === "running" ? now : null,
    finished_at: status === "failed" ? now : null,
    expires_at: status === "pending" ? now + APPROVAL_MS : null,
  } as const;
}

const WRONG_ARGUMENTS =
  "The arguments are not a JSON object, or the answer reached its limit of tokens before they were complete.";

/** Why a call cannot be made at all; null if it can. */
function wrongUse({ input }: ToolUse, tool: PermittedTool | undefined): string | null {
  if (!tool) return "There is no such tool.";
  if (!tool.isPermitted) return REFUSED;
  return input === null ? WRONG_ARGUMENTS : null;
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
    calls: results.map(({ call }) => call),
    parts: results.map(({ part }) => part),
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** What the model is told about calls. */
export interface CallResults {
  /** As they are now: one whose tool or grant has changed waits for approval. */
  readonly calls: readonly ToolCallRecord[];
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
  const { needs_approval } = result;
  const isAsked = needs_approval && call.message_id === place.turn.message_id;
  const ended = await services.store.write((tx) =>
    isAsked ? askAgain(tx, services.toolServers, call) : endCall(tx, call, result),
  );
  return resultOf(ended ?? call, result);
}

function performed(
  services: CallServices,
  { turn, provider, files, signal }: CallingTurn,
  call: ToolCallRecord,
): Promise<BuiltInResult & Pick<ToolResult, "needs_approval">> {
  const { server_id, tool, owner_id } = call;
  if (server_id === null) {
    const place = { turn, owner_id, provider, files };
    return runBuiltIn(services, place, tool, call.arguments).catch((error) => {
      services.log.error({ err: error, turn: turn.id, tool }, "built-in tool failed");
      return failedCall("The tool failed. Try again later.");
    });
  }
  const elicit = services.elicit(call, signal);
  const called = { server_id, tool, fingerprint: call.fingerprint ?? "" };
  const given = { ...call.arguments };
  const permission = () => callPermission(services, call, server_id);
  const isApproved = call.decided_at !== null;
  return services.toolServers.call(owner_id, called, given, {
    signal,
    elicit,
    isApproved,
    permission,
  });
}

/** What the agent may do now with the tool that the call is for. An approval is for this very call. */
function callPermission(
  { store, toolServers }: CallServices,
  call: ToolCallRecord,
  server_id: string,
): Promise<CallPermission> {
  return store.read(async (tx) => {
    const granted = await toolPermission(tx, { ...call, server_id }, toolServers.operatorTools());
    if (!granted || granted.fingerprint !== call.fingerprint) return "refused";
    if (call.decided_at !== null) return "permitted";
    const conversation = await tx.conversation(call.conversation_uuid, call.agent_id);
    return needsApproval(granted.policy, conversation?.kind === "direct") ? "asks" : "permitted";
  });
}

/** Has the owner decide about a call that was not made because its tool or its grant has changed. */
async function askAgain(
  tx: WriteTx,
  toolServers: ToolServers,
  { uuid }: ToolCallRecord,
): Promise<ToolCallRecord | null> {
  const call = await tx.toolCall(uuid);
  if (call?.status !== "running" || call.server_id === null) return call;
  const wanted = { ...call, server_id: call.server_id };
  const permission = await toolPermission(tx, wanted, toolServers.operatorTools());
  if (!permission) return endCall(tx, call, { text: REFUSED, is_error: true });
  const { fingerprint } = permission;
  const expires_at = Date.now() + APPROVAL_MS;
  await changeToolCall(tx, call, { status: "pending", fingerprint, started_at: null, expires_at });
  return tx.toolCall(uuid);
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
  const bounded = boundedText(text);
  await changeToolCall(
    tx,
    call,
    is_error
      ? { status: "failed", error: bounded, finished_at }
      : { status: "done", result: bounded, finished_at },
  );
  return tx.toolCall(uuid);
}

interface CallResult {
  readonly call: ToolCallRecord;
  readonly part: ToolResultPart;
  readonly tokens: number;
}

function resultOf(call: ToolCallRecord, result?: BuiltInResult): CallResult {
  const { parts = [], tokens = 0 } = result ?? {};
  const content = [{ type: "text" as const, text: resultText(call) }, ...parts];
  const is_error = call.status !== "done";
  return {
    call,
    part: { type: "tool_result", tool_use_id: call.model_id, content, is_error },
    tokens,
  };
}
