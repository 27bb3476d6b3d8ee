import type { Logger } from "../../observe/log.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { ToolRecord } from "../../store/tools.ts";
import type { CallOptions } from "./connection.ts";
import type { Contacts, KnownServer } from "./contacts.ts";
import { ANSWER_TOO_LATE } from "./errors.ts";
import { loadClient } from "./load-client.ts";
import { failedCall, REFUSED, type ToolResult } from "./result-text.ts";
import type { ServerDirectory } from "./server-directory.ts";

/** A call of a tool, and the fingerprint that the tool had when the call was asked for. */
export interface ServerCall extends CallOptions {
  readonly owner_id: number;
  readonly server_id: string;
  readonly tool: string;
  readonly fingerprint: string;
  readonly input: Record<string, unknown>;
  /** What the agent may do. Asked right before the call is made, which may be a while later. */
  permission(): Promise<CallPermission>;
}

/** Whether a call may be made, needs approval first, or must not be made. */
export type CallPermission = "permitted" | "asks" | "refused";

interface ServerCallsOptions {
  readonly directory: ServerDirectory;
  readonly contacts: Contacts;
  /** For a call and the wait for a connection. */
  readonly callMs: number;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** How a call of a tool ended: `error` is an error that the tool reported itself. */
const OUTCOMES = ["ok", "error", "failed", "timeout", "refused", "aborted"] as const;
type Outcome = (typeof OUTCOMES)[number];

export function createServerCalls(options: ServerCallsOptions) {
  const { directory, contacts, callMs, log, metrics } = options;
  const counter = (name: string, help: string) => metrics.counter(name, help, "outcome", OUTCOMES);
  const count = counter("parley_tool_calls_total", "Calls of tools by outcome.");
  const countSeconds = counter(
    "parley_tool_call_seconds_total",
    "Time that calls of tools took, by outcome.",
  );

  async function outcomeOf(call: ServerCall): Promise<[Outcome, ToolResult | null]> {
    const server = await directory.find(call.owner_id, call.server_id);
    if (!server) return ["refused", failedCall(GONE)];
    const problem = problemWith(call, server.tools);
    if (problem) return ["refused", problem];
    try {
      return await make(server, call);
    } catch (error) {
      if (call.signal.aborted) return ["aborted", null];
      const { callError, contactError } = await loadClient();
      const failure = contactError(error);
      if (failure.status === "unauthorized") await server.save({ ...failure, at: Date.now() });
      const outcome = failure.error === ANSWER_TOO_LATE ? "timeout" : "failed";
      return [outcome, failedCall(callError(error))];
    }
  }

  /** Makes a call, and once more if the server has forgotten the connection, and so has not made it. */
  async function make(
    server: KnownServer,
    call: ServerCall,
    endsAt = performance.now() + callMs,
  ): Promise<[Outcome, ToolResult]> {
    const leftMs = () => Math.max(0, Math.round(endsAt - performance.now()));
    const waiting = AbortSignal.any([call.signal, AbortSignal.timeout(leftMs())]);
    const contact = await contacts.acquire(server, waiting);
    const { lease } = contact;
    try {
      // People approve a tool, or grant it, as it was shown to them.
      const tools = await contacts.currentTools(server, contact, waiting);
      const problem = problemWith(call, tools) ?? (await problemWithPermission(call));
      if (problem) return ["refused", problem];
      const timed = { ...call, timeoutMs: leftMs() };
      const result = await lease.connection.callTool(call.tool, call.input, timed);
      return [result.is_error ? "error" : "ok", result];
    } catch (error) {
      const status = (await loadClient()).httpStatusOf(error);
      // The server does not know the connection, by its `Mcp-Session-Id`, and so has done nothing.
      const isForgotten = status === 404;
      // Some servers answer 400 then, also to calls that they have made. Others are probably forgotten
      // too: the next connection is new.
      if (isForgotten || status === 400) contacts.drop(server.key);
      if (!lease.isReused || !isForgotten) throw error;
    } finally {
      lease.release();
    }
    return make(server, call, endsAt);
  }

  /**
   * Calls a tool of a server of the owner or of the operator, unless it is another one by now: its
   * fingerprint tells. A call has 60 s, the wait for a connection included, without the time in which
   * `elicit` waits for an answer. Whatever fails is told in the result; rejects only with the reason of
   * the signal, after the server was told. Counts the calls by outcome.
   */
  return async (call: ServerCall): Promise<ToolResult> => {
    const startedAt = performance.now();
    const [outcome, result] = await outcomeOf(call);
    const seconds = (performance.now() - startedAt) / 1000;
    count(outcome);
    countSeconds(outcome, seconds);
    log.debug({ server_id: call.server_id, outcome, seconds }, "tool call ended");
    if (!result) throw call.signal.reason;
    return result;
  };
}

const GONE = "The tool does not exist any more.";
const notCalled = (why: string): ToolResult => ({
  ...failedCall(`The tool was not called: ${why}`),
  needs_approval: true,
});

/** Why a tool cannot be called; null if it is offered as it was when the call was asked for. */
function problemWith(call: ServerCall, offered: readonly ToolRecord[]): ToolResult | null {
  const tool = offered.find(({ name }) => name === call.tool);
  if (!tool) return failedCall(GONE);
  if (tool.fingerprint === call.fingerprint) return null;
  return notCalled("it has changed since it was offered.");
}

async function problemWithPermission(call: ServerCall): Promise<ToolResult | null> {
  const permission = await call.permission();
  if (permission === "permitted") return null;
  return permission === "asks" ? notCalled("it needs approval now.") : failedCall(REFUSED);
}
