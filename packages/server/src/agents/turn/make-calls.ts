import { transient } from "../../changes/change.ts";
import { APPROVAL_MS, changeToolCall } from "../../domain/tool-calls.ts";
import { toolPermission } from "../../domain/tools.ts";
import type { ToolResultPart } from "../../rules/model-content.ts";
import { needsApproval } from "../../rules/tool-calls.ts";
import { resultText } from "../../rules/tool-context.ts";
import type { WriteTx } from "../../store/store.ts";
import type { ToolCallRecord } from "../../store/tool-calls.ts";
import { type BuiltInResult, runBuiltIn } from "../tools/built-in.ts";
import { boundedText, failedCall, REFUSED } from "../tools/result-text.ts";
import type { CallPermission } from "../tools/server-calls.ts";
import type { ToolServers } from "../tools/servers.ts";
import type { AdmittedTurn } from "./prepare.ts";

/** Makes the calls among these that run, at the same time, and returns what the model is told. */
export async function makeCalls(place: AdmittedTurn, calls: readonly ToolCallRecord[]) {
  const running = calls.filter(({ status }) => status === "running");
  if (running.length > 0) await showStatus(place, running);
  const results = await Promise.all(
    calls.map((call) => (call.status === "running" ? makeCall(place, call) : resultOf(call))),
  );
  if (running.length > 0) await showStatus(place, []);
  return {
    /** As they are now: one whose tool or grant has changed waits for approval. */
    calls: results.map(({ call }) => call),
    parts: results.map(({ part }) => part),
    /** Estimated, of pictures and documents among them. */
    tokens: results.reduce((sum, { tokens }) => sum + tokens, 0),
  };
}

/** Tells people what the agent does right now. */
function showStatus({ store, turn }: AdmittedTurn, calls: readonly ToolCallRecord[]) {
  const { message_uuid, conversation_uuid } = turn;
  const titles = [...new Set(calls.map(({ title }) => title))].join(", ");
  const text = titles === "" ? "" : `Using ${titles}`;
  const params = { message_id: message_uuid ?? "", text };
  const status = transient("events.turnStatus", params, { conversation: conversation_uuid });
  return store.note((tx) => tx.signal(status));
}

async function makeCall(place: AdmittedTurn, call: ToolCallRecord) {
  const result = await performed(place, call);
  place.signal.throwIfAborted();
  const isAsked = result.needs_approval && call.message_id === place.turn.message_id;
  const ended = await place.store.write(async (tx) => {
    const current = await tx.toolCall(call.uuid);
    // It was ended meanwhile.
    if (current?.status !== "running") return current;
    if (!isAsked || !(await askAgain(tx, place.toolServers, current))) {
      await endCall(tx, current, isAsked ? failedCall(REFUSED) : result);
    }
    return tx.toolCall(call.uuid);
  });
  return resultOf(ended ?? call, result);
}

function performed(place: AdmittedTurn, call: ToolCallRecord): Promise<BuiltInResult> {
  const { log, turn, signal } = place;
  const { server_id, tool, owner_id } = call;
  if (server_id === null) {
    return runBuiltIn({ ...place, owner_id }, tool, call.arguments).catch((error) => {
      log.error({ err: error, turn: turn.id, tool }, "built-in tool failed");
      return failedCall("The tool failed. Try again later.");
    });
  }
  return place.toolServers.call({
    owner_id,
    server_id,
    tool,
    fingerprint: call.fingerprint ?? "",
    input: { ...call.arguments },
    signal,
    elicit: place.elicit(call, signal),
    permission: () => callPermission(place, call, server_id),
  });
}

/** What the agent may do now with the tool that the call is for. An approval is for this very call. */
function callPermission(
  { store, toolServers }: AdmittedTurn,
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

/** Has the owner decide about a call whose tool or grant has changed. False if there is no grant now. */
async function askAgain(tx: WriteTx, toolServers: ToolServers, call: ToolCallRecord) {
  const { server_id } = call;
  if (server_id === null) return false;
  const permission = await toolPermission(tx, { ...call, server_id }, toolServers.operatorTools());
  if (!permission) return false;
  const { fingerprint } = permission;
  const expires_at = Date.now() + APPROVAL_MS;
  await changeToolCall(tx, call, { status: "pending", fingerprint, started_at: null, expires_at });
  return true;
}

function endCall(tx: WriteTx, call: ToolCallRecord, { text, is_error }: BuiltInResult) {
  const bounded = boundedText(text);
  const outcome = is_error
    ? ({ status: "failed", error: bounded } as const)
    : ({ status: "done", result: bounded } as const);
  return changeToolCall(tx, call, { ...outcome, finished_at: Date.now() });
}

function resultOf(call: ToolCallRecord, { parts = [], tokens = 0 }: Partial<BuiltInResult> = {}) {
  const content = [{ type: "text" as const, text: resultText(call) }, ...parts];
  const is_error = call.status !== "done";
  const part: ToolResultPart = {
    type: "tool_result",
    tool_use_id: call.model_id,
    content,
    is_error,
  };
  return { call, part, tokens };
}
