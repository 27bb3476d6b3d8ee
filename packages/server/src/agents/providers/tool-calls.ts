import type { ProviderFields } from "../../rules/model-content.ts";
import type { SentToolUse, ToolUse } from "./adapter.ts";
import { providerErrors } from "./provider-errors.ts";

const MAX_CALLS = 32;
const MAX_ARGUMENT_BYTES = 256 << 10;
/** Of the fields of a call that only its provider understands. Signatures have a few thousand. */
const MAX_FIELD_CHARACTERS = 32 << 10;
/** Deeper arguments are of no use to a tool, and slow to check and to store. */
const MAX_DEPTH = 32;

/** A call whose arguments have not all arrived. */
export interface OpenCall {
  readonly id: string;
  readonly name: string;
  /** A part of a JSON object. */
  arguments: string;
  /** Fields that only the provider understands. */
  provider_fields?: ProviderFields;
}

/** Assembles the tool calls of one answer from untrusted fragments, within bounds. */
export class ToolCalls {
  readonly #ids = new Set<string>();
  #argumentBytes = 0;

  /** Starts a call. Makes an id if there is none, or one that cannot be used. */
  start(id: unknown, name: unknown): OpenCall {
    if (this.#ids.size === MAX_CALLS) throw providerErrors.tooMuchData();
    const usable = isCallId(id) && !this.#ids.has(id) ? id : newCallId();
    this.#ids.add(usable);
    return { id: usable, name: toolName(name), arguments: "" };
  }

  /** Keeps fields of a call that are sent back as they came. */
  keep(call: OpenCall, fields: Record<string, unknown>): void {
    if (Object.keys(fields).length === 0 || isDeep(fields)) return;
    const kept = { ...call.provider_fields, ...fields };
    const json = JSON.stringify(kept);
    if (json.length <= MAX_FIELD_CHARACTERS) call.provider_fields = JSON.parse(storableJson(json));
  }

  /** Adds the next fragment of the arguments. Some servers send them as an object, at once. */
  append(call: OpenCall, fragment: unknown): void {
    if (isDeep(fragment)) throw providerErrors.incompleteAnswer();
    const text = typeof fragment === "object" && fragment ? JSON.stringify(fragment) : fragment;
    if (typeof text !== "string") return;
    this.#argumentBytes += Buffer.byteLength(text);
    if (this.#argumentBytes > MAX_ARGUMENT_BYTES) throw providerErrors.tooMuchData();
    call.arguments += text;
  }
}

export const toToolUse = (call: OpenCall): SentToolUse => ({
  type: "tool_use",
  id: call.id,
  name: call.name,
  ...parseArguments(call.arguments),
  ...(call.provider_fields && { provider_fields: call.provider_fields }),
});

/** Gateways may put data into an id that they want back, so most characters are kept. */
const isCallId = (id: unknown): id is string =>
  typeof id === "string" && /^[\x21-\x7e]{1,256}$/.test(id);

const newCallId = () => `call_${crypto.randomUUID().replaceAll("-", "")}`;

/** Providers reject a history with other characters, and models make names up. */
const toolName = (name: unknown) =>
  (typeof name === "string" ? name : "").replaceAll(/[^\w-]/g, "_").slice(0, 64) || "_";

/** Tools without parameters get no arguments from some models. */
const parseArguments = (json: string): Pick<SentToolUse, "input" | "isBare"> =>
  json.trim() === "" ? { input: {}, isBare: true } : { input: parseObject(json) };

/** Null if it is no JSON object, or a deep one. */
export function parseObject(json: string): ToolUse["input"] {
  try {
    const value = JSON.parse(json);
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject && !isDeep(value) ? JSON.parse(storableJson(JSON.stringify(value))) : null;
  } catch {
    // The model is told that its arguments are no JSON.
    return null;
  }
}

export function isDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === MAX_DEPTH || Object.values(value).some((each) => isDeep(each, depth + 1));
}

/** Replaces what no store can keep: NUL, and lone surrogates, which are always escaped in JSON. */
const storableJson = (json: string) =>
  json.replaceAll(/\\(?:u0000|ud[89a-f][0-9a-f]{2}|.)/g, (sequence) =>
    sequence.length > 2 ? "\\ufffd" : sequence,
  );
