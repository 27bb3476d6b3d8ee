import type { Operation } from "@parley/protocol";
import { historyId } from "@parley/protocol/text/fields";
import type { z } from "zod";
import { eventPlace, hasPlace, type NamedEvent, resourceOf } from "./contract.ts";
import { accessOf, resourceTitle, rulesOf } from "./prose.ts";
import {
  mapEntries,
  refName,
  type Schema,
  type SchemaBook,
  socketWords,
  variantsOf,
} from "./schemas.ts";

const timestamp = "2026-11-15T02:10:00.000Z";
const message = "019a8518-3c40-7d6e-9f01-5b2f6f0c1a2e";
const conversation = "019a8517-92d1-7a44-8c1d-0e6b7f3a9d55";

/** Example values by field name, so that the examples look like real data. */
const byName: Record<string, unknown> = {
  access_token: "ply_Zm9yIGV4YW1wbGUgb25seSwgbm90IGEgcmVhbCB0b2s",
  action: "typing",
  agent_username: "ada:claude",
  api_key: "sandbox-0123456789",
  chat_id: conversation,
  content: "Hello, Grace!",
  conversation_id: conversation,
  count: 1,
  current_password: "correct horse battery",
  delta: "Hello",
  device: "v1.5f2c0a91b7de.Zm9yIGV4YW1wbGUgb25seQ",
  display_name: "Ada Lovelace",
  emoji: "👍",
  expires_at: "2026-12-15T02:10:00.000Z",
  has_more: false,
  key_tail: "••••••••6789",
  mentions: [],
  model: "claude-sonnet-4-5",
  new_password: "battery staple",
  offset: 5,
  participant_count: 2,
  participants: [
    { username: "ada", kind: "human", display_name: "Ada Lovelace" },
    { username: "grace", kind: "human", display_name: "Grace Hopper" },
  ],
  password: "correct horse battery",
  provider: "claude",
  query: "engine",
  reacted: false,
  reactions: [],
  seq: 7,
  since_seq: 6,
  snippet: "The **engine** weaves algebraic patterns.",
  title: "Analytical Engine",
  username: "ada",
  usernames: ["grace"],
  version: 7,
};

const byFormat: Record<string, unknown> = { uuid: message, "date-time": timestamp };

/** Nullable fields are null in examples, except these. */
const rarelyNull = new Set(["finalized_at"]);

/** A value that matches the schema, with all of its fields except marks such as `deleted`. */
export function exampleOf(schema: Schema, shared: Record<string, Schema>, name = ""): unknown {
  const inner = (each: Schema, as = "") => exampleOf(each, shared, as);
  const target = schema.$ref && shared[refName(schema.$ref)];
  if (target) return inner(target, name);
  if (schema.const !== undefined) return schema.const;
  if (isNullable(schema) && !rarelyNull.has(name)) return null;
  if (schema.examples?.length) return schema.examples[0];
  if (schema.enum?.length) return schema.enum[0];
  if (name in byName && fits(byName[name], schema)) return byName[name];
  const [variant] = [...variantsOf(schema), ...(schema.allOf ?? [])];
  if (variant) return inner(variant, name);
  if (schema.format && schema.format in byFormat) return byFormat[schema.format];
  if (schema.type === "array") return schema.items ? [inner(schema.items)] : [];
  if (schema.type === "object") return exampleObject(schema, inner);
  return scalar(schema);
}

/**
 * The smallest input that the operation accepts: the required fields, and as many optional ones as
 * its rules require. Undefined if none is found: a wrong example is worse than none.
 */
export function inputExample(operation: Operation, input: Schema, shared: Record<string, Schema>) {
  const variants = input.properties ? [input] : (input.anyOf ?? [input]);
  for (const { properties = {}, required = [] } of variants) {
    const optional = Object.keys(properties).filter((name) => !required.includes(name));
    for (let count = 0; count <= optional.length; count++) {
      const chosen = new Set([...required, ...optional.slice(0, count)]);
      const fields = Object.entries(properties).filter(([name]) => chosen.has(name));
      const candidate = Object.fromEntries(
        fields.map(([name, each]) => [name, exampleOf(each, shared, name)]),
      );
      if (operation.input.safeParse(candidate).success) return candidate;
    }
  }
  return undefined;
}

/** A result that matches the schema; undefined if none is found. */
function outputExample(output: z.ZodType, schema: Schema, shared: Record<string, Schema>): unknown {
  const candidate = exampleOf(schema, shared);
  return output.safeParse(candidate).success ? candidate : undefined;
}

/** What the page and both documents say of an operation. */
export function describe(operation: Operation, book: SchemaBook) {
  const input = book.input(operation.input);
  const output = operation.output && book.output(operation.output);
  const sent = inputExample(operation, input, book.shared);
  const result = operation.output && output && outputExample(operation.output, output, book.shared);
  return {
    access: accessOf(operation),
    rules: rulesOf(operation),
    tags: [resourceTitle(resourceOf(operation))],
    input,
    takesNothing: operation.input.safeParse({}).success,
    output,
    /** Whether success may come without a `result`. */
    mayReturnNothing: !operation.output || operation.output.safeParse(undefined).success,
    /** An input that the operation accepts, and the same call as a frame on the socket. */
    sent,
    frame: sent && frameExample(operation, sent),
    /** The response to a successful call. */
    answer: result === undefined ? undefined : { ok: true, ...(output && { result }) },
  };
}

/** The frame of an event, with `at` or `history_id` if it has one. */
export function eventExample([method, event]: NamedEvent, book: SchemaBook) {
  const params = outputExample(event.params, book.output(event.params), book.shared);
  if (params === undefined) return undefined;
  if (event.carries === "history_id") {
    return { method, params, history_id: exampleOf(book.output(historyId), book.shared) };
  }
  if (!hasPlace(event)) return { method, params };
  return { method, params, at: exampleOf(book.output(eventPlace), book.shared) };
}

const frameExample = ({ socket }: Operation, input: Record<string, unknown>) => ({
  method: socket,
  params: mapEntries(input, (name, value) => [socketWords(name), value]),
  id: 1,
});

/** Whether a value matches the type: fields with the same name may have different types. */
function fits(value: unknown, { type }: Schema): boolean {
  const kinds = Array.isArray(type) ? type : [type];
  if (Array.isArray(value)) return kinds.includes("array");
  return kinds.includes(typeof value === "number" ? "integer" : typeof value);
}

function isNullable({ type, anyOf }: Schema): boolean {
  return Array.isArray(type)
    ? type.includes("null")
    : !!anyOf?.some((each) => each.type === "null");
}

function exampleObject(schema: Schema, inner: (schema: Schema, name?: string) => unknown): object {
  const { properties, required = [] } = schema;
  if (properties) {
    const isMark = (name: string) => properties[name]?.const === true && !required.includes(name);
    const shown = Object.entries(properties).filter(([name]) => !isMark(name));
    return Object.fromEntries(shown.map(([name, each]) => [name, inner(each, name)]));
  }
  const { additionalProperties: values, propertyNames: keys } = schema;
  if (!values || typeof values !== "object") return {};
  const key = keys?.format ? byFormat[keys.format] : "ada";
  return { [String(key)]: inner(values) };
}

function scalar({ type, minimum, minLength }: Schema): unknown {
  const [kind] = Array.isArray(type) ? type : [type];
  if (kind === "integer" || kind === "number") return typeof minimum === "number" ? minimum : 0;
  if (kind === "boolean") return true;
  if (kind !== "string") return null;
  return "text".padEnd(typeof minLength === "number" ? minLength : 0, ".");
}
