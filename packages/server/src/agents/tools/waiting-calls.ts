import { changeToolCall } from "../../domain/tool-calls.ts";
import { needsApproval } from "../../rules/tool-calls.ts";
import type { ToolCallRecord } from "../../store/tool-calls.ts";
import type { AdmittedTurn } from "../prepare-turn.ts";
import type { OfferedTool } from "./offered.ts";
import { REFUSED } from "./result-text.ts";
import { type CallingTurn, type CallServices, makeCalls } from "./run-calls.ts";

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
 * that the agent may not make any more.
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
  const waiting = await store.write(async (tx) => {
    const current = await tx.turn(place.turn.id);
    const message = await tx.message(continues_uuid);
    if (current?.status !== "running" || current.node !== node || !message) return [];
    const open = (await tx.toolCallsOf([message.id])).filter(({ status }) => status === "running");
    const ready = open.filter((call) => !isBegun(call) && isAllowed(call, offered, isDirect));
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

const isRequested = ({ decided_at }: ToolCallRecord) => decided_at === null;

/** Whether the agent may use the tool that was approved, or without approval the one that it has now. */
const isAllowed = (
  call: ToolCallRecord,
  offered: ReadonlyMap<string, OfferedTool>,
  isDirect: boolean,
): boolean =>
  [...offered.values()].some(
    (tool) =>
      tool.server_id === call.server_id &&
      tool.tool === call.tool &&
      tool.fingerprint === call.fingerprint &&
      (!isRequested(call) || !needsApproval(tool.policy, isDirect)),
  );

const isBegun = ({ started_at }: ToolCallRecord) => started_at !== null;
