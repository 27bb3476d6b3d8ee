import { z } from "zod";
import { fieldMeanings } from "./prose.ts";

/** The part of JSON Schema that the reference uses. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  not?: Schema;
  additionalProperties?: Schema | boolean;
  propertyNames?: Schema;
  enum?: unknown[];
  const?: unknown;
  examples?: unknown[];
  [keyword: string]: unknown;
}

/** The shapes that a value may have, if there are several. */
export const variantsOf = ({ anyOf, oneOf }: Schema): Schema[] => anyOf ?? oneOf ?? [];

/** The name at the end of a `$ref`. */
export const refName = (ref: string) => ref.slice(Math.max(ref.lastIndexOf("/"), 0)).slice(1);

type Direction = "input" | "output";
type Target = "draft-2020-12" | "draft-07";

/**
 * Converts schemas of the contract to JSON Schema, and collects those with an id in `shared`, to which
 * the `$ref`s point. What a caller may send differs from what it receives (an id in capitals is
 * accepted, but never returned), so a record that is also an input gets a second entry.
 */
export function createSchemaBook(place: string, target: Target) {
  const shared: Record<string, Schema> = {};
  const convert = (schema: z.ZodType, io: Direction): Schema => {
    const { $schema, $defs, definitions, ...root } = z.toJSONSchema(schema, {
      io,
      target,
      unrepresentable: "any",
      override: (context) => io === "input" && describeInput(context),
    }) as Schema;
    const name = (id: string) => (io === "input" ? `${id}Input` : id);
    const refTo = (id: string) => `${place}${name(id)}`;
    const finish = (each: Schema) =>
      mapSchema(each, (part) => explain(tidy(part, io, refTo), target));
    for (const [id, each] of Object.entries(($defs ?? definitions ?? {}) as Record<string, Schema>))
      shared[name(id)] ??= finish(each);
    return finish(root);
  };
  return {
    shared,
    /** Resolves the `$ref` of a record, because the socket renames fields of inputs. */
    input: (schema: z.ZodType) => {
      const input = convert(schema, "input");
      return (input.$ref && shared[refName(input.$ref)]) || input;
    },
    output: (schema: z.ZodType) => convert(schema, "output"),
  };
}

export type SchemaBook = ReturnType<typeof createSchemaBook>;

/** The conversation is `chat_id` over HTTP and `conversation_id` in socket params. */
export const socketWords = (text: string) => text.replace(/\bchat_id\b/g, "conversation_id");

export function socketParams(input: Schema): Schema {
  const { properties, required, anyOf, not } = input;
  const reworded = ({ description, ...rest }: Schema): Schema =>
    description ? { ...rest, description: socketWords(description) } : rest;
  return {
    ...input,
    ...(anyOf && { anyOf: anyOf.map(socketParams) }),
    ...(not && { not: socketParams(not) }),
    ...(required && { required: required.map(socketWords) }),
    ...(properties && {
      properties: mapEntries(properties, (name, each) => [socketWords(name), reworded(each)]),
    }),
  };
}

export function mapEntries<From, To>(
  entries: Record<string, From>,
  change: (name: string, value: From) => [string, To],
): Record<string, To> {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => change(name, value)));
}

/** Applies a change to all parts of a schema, innermost first. */
function mapSchema(schema: Schema, change: (part: Schema) => Schema): Schema {
  const copy = { ...schema };
  const inner = (each: Schema) => mapSchema(each, change);
  if (copy.properties) {
    copy.properties = mapEntries(copy.properties, (name, each) => [name, inner(each)]);
  }
  for (const keyword of ["anyOf", "oneOf", "allOf", "prefixItems"]) {
    if (Array.isArray(copy[keyword])) copy[keyword] = (copy[keyword] as Schema[]).map(inner);
  }
  for (const keyword of ["items", "additionalProperties", "propertyNames", "not"]) {
    const value = copy[keyword];
    if (value !== null && typeof value === "object") copy[keyword] = inner(value as Schema);
  }
  return change(copy);
}

/** Removes what comes from the conversion and not from the contract. */
function tidy(part: Schema, io: Direction, place: (id: string) => string): Schema {
  const { minimum, maximum, additionalProperties, ...kept } = part;
  if (minimum !== undefined && minimum !== Number.MIN_SAFE_INTEGER) kept.minimum = minimum;
  if (maximum !== undefined && maximum !== Number.MAX_SAFE_INTEGER) kept.maximum = maximum;
  // Results may gain fields: a client generated from here must not reject them.
  const closed = additionalProperties === false && io === "output";
  if (additionalProperties !== undefined && !closed)
    kept.additionalProperties = additionalProperties;
  // The format is clearer than the pattern that enforces it.
  if (kept.format) delete kept.pattern;
  if (kept.$ref) kept.$ref = place(refName(kept.$ref));
  return kept;
}

/** Adds the descriptions of `fieldMeanings` to fields that have none. */
function explain(part: Schema, target: Target): Schema {
  if (!part.properties) return part;
  const properties = mapEntries(part.properties, (name, each) => {
    const description = fieldMeanings[name];
    // Draft 7 ignores all keywords beside a `$ref`.
    const isIgnored = each.$ref !== undefined && target === "draft-07";
    const keeps = !description || each.description || isIgnored;
    return [name, keeps ? each : { ...each, description }];
  });
  return { ...part, properties };
}

/** Corrects the schema of an input where the converter describes the value after its transformation. */
function describeInput(context: { zodSchema: z.core.$ZodTypes; jsonSchema: object }) {
  const { def } = context.zodSchema._zod;
  const json = context.jsonSchema as Schema;
  if (def.type === "pipe") {
    // Names are cleaned before they are measured, so the bounds are at the end of the pipe.
    const { minLength, maxLength } = z.globalRegistry.get(def.out) ?? {};
    if (minLength !== undefined) json.minLength = minLength;
    if (maxLength !== undefined) json.maxLength = maxLength;
  }
  if (def.type === "string" && def.checks?.some(lowersCase) && typeof json.pattern === "string") {
    json.pattern = json.pattern.replace(/[a-z]-[a-z]/g, (range) => range.toUpperCase() + range);
  }
}

function lowersCase(check: z.core.$ZodCheck<never>): boolean {
  const { def } = (check as unknown as z.core.$ZodCheckOverwrite)._zod;
  return def.check === "overwrite" && def.tx("A") === "a";
}
