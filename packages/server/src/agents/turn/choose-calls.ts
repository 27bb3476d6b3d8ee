import { APPROVAL_MS, addToolCall, changeToolCall } from "../../domain/tool-calls.ts";
import { toolPermission } from "../../domain/tools.ts";
import { needsApproval } from "../../rules/tool-calls.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { ConversationRecord } from "../../store/conversations.ts";
import type { ReadTx, WriteTx } from "../../store/store.ts";
import type { ToolCallRecord } from "../../store/tool-calls.ts";
import type { TurnRecord, TurnRound } from "../../store/turns.ts";
import type { ToolUse } from "../providers/adapter.ts";
import type { OfferedTool, OfferedTools } from "../tools/offered.ts";
import { REFUSED } from "../tools/result-text.ts";
import type { ToolServers } from "../tools/servers.ts";
import { type AdmittedTurn, type PreparedTurn, runningTurn } from "./prepare.ts";

/** Which calls a turn makes: those that it continues after, and those that its model asks for. */

/** Whether the turn is to make calls that nobody approved: somebody asked for them with a button. */
export async function hasRequestedCalls({ store, turn }: AdmittedTurn): Promise<boolean> {
  if (turn.continues_uuid === null) return false;
  return (await store.read((tx) => openCalls(tx, turn))).some(isRequested);
}

async function openCalls(tx: ReadTx, { continues_uuid }: TurnRecord): Promise<ToolCallRecord[]> {
  const message = continues_uuid === null ? null : await tx.message(continues_uuid);
  const calls = message ? await tx.toolCallsOf([message.id]) : [];
  return calls.filter(({ status }) => status === "running");
}

/**
 * Marks the calls as begun that the owner approved or a button asked for, and returns them. They are
 * made before the turn that continues after them asks the model. A call that an earlier process had
 * begun is not made again, and neither is one that the agent may not make any more.
 */
export async function startWaitingCalls(
  { store, node, turn, conversation }: AdmittedTurn,
  offered: OfferedTools,
): Promise<ToolCallRecord[]> {
  if (turn.continues_uuid === null) return [];
  return store.write(async (tx) => {
    if (!(await runningTurn(tx, node, turn.id))) return [];
    const started: ToolCallRecord[] = [];
    for (const call of await openCalls(tx, turn)) {
      const isBegun = call.started_at !== null;
      if (!isBegun && isAllowed(call, offered, conversation)) {
        await tx.startToolCall(call, Date.now());
        started.push(call);
      } else {
        const error = isBegun ? "interrupted" : REFUSED;
        await changeToolCall(tx, call, { status: "failed", finished_at: Date.now(), error });
      }
    }
    return started;
  });
}

const isRequested = ({ decided_at }: ToolCallRecord) => decided_at === null;

/** Whether the agent may use the tool that was approved, or without approval the one that it has now. */
const isAllowed = (call: ToolCallRecord, offered: OfferedTools, { kind }: ConversationRecord) =>
  [...offered.values()].some(
    (tool) =>
      tool.server_id === call.server_id &&
      tool.tool === call.tool &&
      tool.fingerprint === call.fingerprint &&
      (!isRequested(call) || !needsApproval(tool.policy, kind === "direct")),
  );

/** The calls that the model asked for in one round. */
interface AskedRound {
  readonly uses: readonly ToolUse[];
  /** The length in bytes of what the agent has written so far. */
  readonly text_bytes: number;
  /** The number of calls of earlier rounds. */
  readonly earlier: number;
  /** The rounds so far, this one included. */
  readonly rounds: readonly TurnRound[];
}

/**
 * Stores the calls of a round. Those that need no approval are `running`: nobody else makes them. Null
 * if this node no longer runs the turn.
 */
export function storeCalls(
  { store, node, toolServers, turn, agent, conversation, tools }: PreparedTurn,
  round: AskedRound,
): Promise<ToolCallRecord[] | null> {
  return store.write(async (tx) => {
    const current = await runningTurn(tx, node, turn.id);
    if (!current || current.message_id === null || current.message_uuid === null) return null;
    const { message_id, message_uuid, conversation_id, conversation_uuid } = current;
    for (const [place, use] of round.uses.entries()) {
      const tool = await permittedTool(tx, toolServers, agent, tools.get(use.name));
      const call = {
        ...newCall(use, tool, conversation),
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
type PermittedTool = OfferedTool & { readonly isPermitted: boolean };

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

function newCall(use: ToolUse, tool: PermittedTool | undefined, { kind }: ConversationRecord) {
  const now = Date.now();
  const wrong = wrongUse(use, tool);
  const asks = tool !== undefined && needsApproval(tool.policy, kind === "direct");
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
