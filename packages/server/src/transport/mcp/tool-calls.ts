import {
  type CallToolRequest,
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
} from "@modelcontextprotocol/server";
import type { OutputOf } from "@parley/protocol";
import type { Invoke } from "../../calls/invoke.ts";
import { type Failure, forbidden } from "../../rules/failure.ts";
import type { Answers } from "./answers.ts";
import { type Asked, askAgent, askAgentListing, type CallOperation } from "./ask-agent.ts";
import type { McpRequest } from "./mcp.ts";
import { askedResult, toolResult } from "./results.ts";
import { operationOf } from "./tool-table.ts";

export interface CallServices {
  readonly invoke: Invoke;
  readonly answers: Answers;
  /** Runs the calls of operations of one body, so that their results are bounded together. */
  readonly inTurn: <Result>(task: () => Promise<Result>) => Promise<Result>;
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal;
}

/** A call of a tool by a client. */
export interface ToolCall {
  readonly request: McpRequest;
  readonly params: CallToolRequest["params"];
  /** Aborted when the client ends the call. */
  readonly gone: AbortSignal;
  /** Present if the call is beyond the caller's rate. */
  readonly refusal: Failure | undefined;
}

/** Throws the failure of the call, or a `ProtocolError` if there is no such tool. */
export async function callTool(services: CallServices, call: ToolCall): Promise<CallToolResult> {
  const { request, params, refusal } = call;
  const { name, arguments: input = {} } = params;
  if (name === askAgentListing.name) {
    if (refusal) throw refusal;
    return askedResult(await ask(services, call, input));
  }
  const operation = operationOf.get(name);
  if (!operation) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 64)}`);
  }
  const callOperation = operationsFor(services, request, refusal);
  return services.inTurn(async () => {
    const result = await callOperation(operation, input as never);
    return toolResult((result as Record<string, unknown> | undefined) ?? { ok: true });
  });
}

async function ask(
  services: CallServices,
  { request, gone }: ToolCall,
  input: unknown,
): Promise<Asked> {
  const { answers, stopping } = services;
  const { caller } = request;
  if (caller.kind !== "session" && caller.kind !== "delegate") {
    throw forbidden("only people may ask agents");
  }
  const signal = AbortSignal.any([gone, request.request.signal, stopping]);
  return askAgent({ call: operationsFor(services, request), caller, answers, signal }, input);
}

/**
 * Calls operations as every transport does, for the caller of a request. The first one was counted
 * as the message that asks for it: it fails if that was refused.
 */
function operationsFor(
  { invoke }: CallServices,
  { request, caller, origin }: McpRequest,
  refusal?: Failure,
): CallOperation {
  let isFirst = true;
  const countRate = () => {
    if (refusal) throw refusal;
  };
  return async (name, input) => {
    const counted = isFirst && { countRate };
    isFirst = false;
    const outcome = await invoke({
      name,
      origin,
      reference: () => Bun.randomUUIDv7(),
      authenticate: () => caller,
      ...counted,
      signal: () => request.signal,
      input: () => input,
    });
    if (!outcome.ok) throw outcome.failure;
    return outcome.result as OutputOf<typeof name>;
  };
}
