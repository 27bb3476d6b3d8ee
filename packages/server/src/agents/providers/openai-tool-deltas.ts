import type { AdapterOutput, SentToolUse } from "./adapter.ts";
import { type OpenCall, ToolCalls, toToolUse } from "./tool-calls.ts";
import { thinkingOutput, valueAt } from "./wire.ts";

/** A call and what the server identifies its fragments by. */
interface IndexedCall {
  readonly call: OpenCall;
  readonly index: unknown;
  readonly id: unknown;
}

/**
 * Assembles the tool calls of one answer. OpenAI identifies the fragments of a call by its index and
 * sends its id and name in the first one. Compatible servers omit the index, give all calls the same
 * one, omit the id, send another with each fragment or repeat the name. Many send a whole call at once.
 */
export class ToolDeltas {
  readonly #calls = new ToolCalls();
  #open: IndexedCall[] = [];

  add(deltas: unknown): AdapterOutput[] {
    if (!Array.isArray(deltas)) return [];
    return deltas.map((delta) => {
      const call = this.#callOf(delta) ?? this.#start(delta);
      const before = call.arguments.length;
      this.#calls.append(call, valueAt(delta, "function", "arguments"));
      this.#calls.keep(call, providerFields(delta));
      return thinkingOutput(call.arguments.slice(before));
    });
  }

  /** The calls in the order of their first fragments. Only the end tells that they are complete. */
  takeAll(): SentToolUse[] {
    const calls = this.#open;
    this.#open = [];
    return calls.map(({ call }) => toToolUse(call));
  }

  #start(delta: unknown): OpenCall {
    const id = valueAt(delta, "id");
    const call = this.#calls.start(id, valueAt(delta, "function", "name"));
    this.#open.push({ call, index: valueAt(delta, "index"), id });
    return call;
  }

  /** The call that a fragment belongs to. Undefined if it begins another one. */
  #callOf(delta: unknown): OpenCall | undefined {
    const index = valueAt(delta, "index");
    const id = valueAt(delta, "id");
    const hasIndex = typeof index === "number";
    const last = this.#open.findLast((open) => !hasIndex || open.index === index);
    const isNamed = Boolean(valueAt(delta, "function", "name"));
    const isOther = id ? id !== last?.id : !hasIndex;
    return isNamed && isOther ? undefined : last?.call;
  }
}

/** Gemini signs its calls in `extra_content`, and refuses them without the signature. */
function providerFields(delta: unknown): Record<string, unknown> {
  if (typeof delta !== "object" || delta === null || Array.isArray(delta)) return {};
  const known = new Set(["index", "id", "type", "function"]);
  return Object.fromEntries(Object.entries(delta).filter(([name]) => !known.has(name)));
}
