import type { z } from "zod";
import { badFields, failure, MAX_REPORTED_FIELDS } from "../rules/failure.ts";

/**
 * Parses the raw input of a call. Throws `bad_request` with what is wrong, each field by the name that
 * `spell` gives it.
 */
export type InputParser<Input = unknown> = (
  raw: unknown,
  spell?: (field: string) => string,
) => Input;

export function createInputParser<Schema extends z.ZodType>(
  schema: Schema,
): InputParser<z.output<Schema>> {
  const omittable = omittableFields(schema);
  const takesChat = fieldsOf(schema)?.has("chat_id") === true;
  return (raw, spell) => {
    if (typeof raw !== "object" || raw === null || Array.isArray(raw)) {
      throw failure("bad_request", "the input must be a JSON object");
    }
    const parsed = schema.safeParse(withoutNulls(raw as Record<string, unknown>, omittable));
    if (parsed.success) return parsed.data;
    const fields = problemsOf(parsed.error.issues, spell);
    if (takesChat && "conversation_id" in raw && !("chat_id" in raw)) {
      fields.chat_id = `${fields.chat_id ?? "is missing"}: over HTTP it has this name, not conversation_id`;
    }
    throw badFields(fields);
  };
}

const MAX_NAME_CHARACTERS = 64;

/** The fields of an object, each with those of the objects in it. Null: any, or it has none. */
export type KnownFields = ReadonlyMap<string, KnownFields> | null;

export function fieldsOf(schema: z.ZodType): KnownFields {
  // Lists, and optional fields, have their content inside.
  const { shape, unwrap } = schema as {
    shape?: Readonly<Record<string, z.ZodType>>;
    unwrap?: () => z.ZodType;
  };
  if (shape) return new Map(Object.entries(shape).map(([name, of]) => [name, fieldsOf(of)]));
  return unwrap ? fieldsOf(unwrap.call(schema)) : null;
}

/** The paths of fields that are not among the known ones, as text that a header can have. */
export function unknownFields(raw: unknown, known: KnownFields): string[] {
  const unknown: string[] = [];
  collectUnknown(raw, known, "", unknown);
  return unknown;
}

/** Longer lists are refused. */
const MAX_CHECKED_ITEMS = 500;

function collectUnknown(value: unknown, known: KnownFields, path: string, found: string[]): void {
  if (known === null || typeof value !== "object" || value === null || Array.isArray(value)) return;
  for (const name in value) {
    if (found.length === MAX_REPORTED_FIELDS) return;
    const inner = known.get(name);
    if (inner === undefined) {
      const shown = name.slice(0, MAX_NAME_CHARACTERS).replace(/[^\w.-]/g, "?") || "?";
      found.push(`${path}${shown}`);
    } else if (inner !== null) {
      const field: unknown = Reflect.get(value, name);
      const items = Array.isArray(field) ? field.slice(0, MAX_CHECKED_ITEMS) : null;
      for (const [place, item] of items?.entries() ?? []) {
        collectUnknown(item, inner, `${path}${name}.${place}.`, found);
      }
      if (!items) collectUnknown(field, inner, `${path}${name}.`, found);
    }
  }
}

/** What is wrong, by the path of the field. */
function problemsOf(issues: readonly z.core.$ZodIssue[], spell = (field: string) => field) {
  const fields: Record<string, string> = {};
  for (const issue of issues) {
    if (Object.keys(fields).length === MAX_REPORTED_FIELDS) break;
    const path = issue.path.map((part) => spell(String(part))).join(".") || "input";
    fields[path.slice(0, 128)] ??= describe(issue);
  }
  return fields;
}

/** Where `null` means the same as leaving a field out. */
interface Omittable {
  readonly fields: readonly string[];
  /** The same for the items of lists, by the name of the list. */
  readonly items: readonly (readonly [string, Omittable])[];
}

/** The optional fields of an input, except those for which the contract gives `null` a meaning. */
function omittableFields(input: z.ZodType): Omittable {
  const { shape = {} } = input as { shape?: Record<string, z.ZodType & { element?: z.ZodType }> };
  const takes = (field: z.ZodType, value: unknown) => field.safeParse(value).success;
  const entries = Object.entries(shape);
  return {
    fields: entries
      .filter(([, field]) => takes(field, undefined) && !takes(field, null))
      .map(([name]) => name),
    items: entries.flatMap(([name, { element }]) =>
      element && "shape" in element ? [[name, omittableFields(element)] as const] : [],
    ),
  };
}

function withoutNulls(
  raw: Record<string, unknown>,
  { fields, items }: Omittable,
): Record<string, unknown> {
  const nulls = fields.filter((name) => raw[name] === null);
  const lists = items.filter(([name]) => Array.isArray(raw[name]));
  if (nulls.length === 0 && lists.length === 0) return raw;
  const kept = Object.entries(raw).filter(([name]) => !nulls.includes(name));
  const cleaned = lists.map(([name, ofItem]) => {
    const clean = (item: unknown) =>
      typeof item === "object" && item !== null
        ? withoutNulls(item as Record<string, unknown>, ofItem)
        : item;
    return [name, (raw[name] as unknown[]).map(clean)] as const;
  });
  return Object.fromEntries([...kept, ...cleaned]);
}

function describe(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined && /received undefined/.test(issue.message)
        ? "is required"
        : `must be ${article(issue.expected)}`;
    case "invalid_value":
      return `must be ${issue.values.join(" or ")}`;
    case "too_small":
      if (COUNTED.has(issue.origin) && Number(issue.minimum) === 1) return "must not be empty";
      return `must ${amount(issue.origin, "at least", issue.minimum)}`;
    case "too_big":
      return `must ${amount(issue.origin, "at most", issue.maximum)}`;
    case "invalid_format":
      return issue.format === "datetime"
        ? "must be a time such as 2026-01-31T09:30:00Z"
        : issue.message;
    case "invalid_key":
      return `has a name that is wrong: it ${issue.issues[0]?.message ?? "cannot be used"}`;
    default:
      return issue.message;
  }
}

const COUNTED = new Map([
  ["array", "items"],
  ["string", "characters"],
]);

function amount(origin: string, bound: string, value: number | bigint): string {
  const things = COUNTED.get(origin);
  return things ? `have ${bound} ${value} ${things}` : `be ${bound} ${value}`;
}

function article(type: string): string {
  if (type === "int") return "a whole number";
  if (type === "record" || type === "object") return "an object";
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}
