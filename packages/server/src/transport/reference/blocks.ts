import { type Delivery, errorStatus, type Operation } from "@parley/protocol";
import { type NamedEvent, ownErrors } from "./contract.ts";
import { describe, eventExample, exampleOf } from "./examples.ts";
import { errorLink, example, pretty, render, table } from "./markdown.ts";
import { refName, type Schema, type SchemaBook, variantsOf } from "./schemas.ts";

/** An entry of the page: its text, and beside it examples. */
export const entry = (
  name: string,
  text: string,
  examples: string,
  id = name,
) => `<article class="entry" id="${id}">
<div>${render(`### [${name}](#${id})\n\n${text}`)}</div>
<div class="examples">${render(examples)}</div>
</article>
`;

/** The entry of an operation: names, input, result, errors and examples. */
export function operationBlock(operation: Operation, book: SchemaBook): string {
  const { name, socket, summary, access, agents } = operation;
  const { rules, input, output, mayReturnNothing, sent, frame, answer } = describe(operation, book);
  const levels = [access, ...(agents ? ["agent"] : [])].map((level) => `[${level}](#access)`);
  const names = [`**POST** /api/${name}`, ...(access === "service" ? [] : [`\`${socket}\``])];
  const text = [
    `${names.join(" · ")} · access: ${levels.join(", ")} · cost: ${costOf(operation)}`,
    summary,
    ...rules,
    "#### Input",
    hasFields(input) ? shape(input, "required") : "None.",
    "#### Result",
    result(output, mayReturnNothing),
    "#### Errors",
    errors(operation),
  ];
  const examples = [
    sent && `#### HTTP\n\n\`\`\`sh\n${curl(operation, sent)}\n\`\`\``,
    access !== "service" && frame && example("Socket", frame),
    answer && example("Answer", answer),
  ];
  return entry(name, text.join("\n\n"), examples.filter(Boolean).join("\n\n"));
}

export function eventBlock([name, event]: NamedEvent, book: SchemaBook): string {
  const { params, delivery, summary } = event;
  const frame = eventExample([name, event], book);
  const fields = shape(book.output(params), "optional");
  const text = `${deliveryNames[delivery]}\n\n${summary}\n\n#### Params\n\n${fields}`;
  return entry(name, text, frame ? example("Frame", frame) : "");
}

export function recordBlock(name: string, book: SchemaBook): string {
  const schema = book.shared[name] ?? {};
  return entry(name, shape(schema, "optional"), example("Example", exampleOf(schema, book.shared)));
}

const deliveryNames: Record<Delivery, string> = {
  counted: "Delivery: counted; `at` has the new value.",
  standing: "Delivery: `at` has the counter as it stands.",
  durable: "Delivery: stored, without `at`.",
  transient: "Delivery: not stored, without `at`.",
};

const hasFields = ({ properties }: Schema) => !properties || Object.keys(properties).length > 0;

function result(output: Schema | null, optional: boolean): string {
  if (!output) return 'None: success is `{ "ok": true }`.';
  const fields = shape(output, "optional");
  return optional ? `${fields}\n\nOr none: success is then \`{ "ok": true }\`.` : fields;
}

function errors(operation: Operation): string {
  const own = ownErrors(operation).toSorted((a, b) => errorStatus[a] - errorStatus[b]);
  return [...own.map(errorLink), "[those of every operation](#errors)"].join(" · ");
}

/** The call as a curl command, for a shell in which `PARLEY` and `TOKEN` are set. */
function curl({ name, access }: Operation, body: object): string {
  const hasBody = Object.keys(body).length > 0;
  const lines = [`curl ${hasBody ? "" : "-X POST "}"$PARLEY/api/${name}"`];
  if (access !== "public") lines.push('-H "authorization: Bearer $TOKEN"');
  if (hasBody) {
    lines.push('-H "content-type: application/json"');
    lines.push(`-d '${pretty(body).replaceAll("'", "'\\''").replaceAll("\n", "\n  ")}'`);
  }
  return lines.join(" \\\n  ");
}

/** What a call costs, in units of a plain call. */
const costOf = ({ cost: { call, each = {} } }: Operation) =>
  [call, ...Object.entries(each).map(([field, cost]) => `${cost} × \`${field}\``)].join(" + ");

const formats: Record<string, string> = { uuid: "UUID", "date-time": "timestamp" };

/** Which fields are marked: the required ones of a request, the optional ones of a result. */
type Mark = "required" | "optional";

/** A table of the fields, or the name of the record that has them. */
function shape(schema: Schema, marks: Mark): string {
  if (schema.properties) return table(["Field", "Type", "Description"], rows(schema, marks));
  const variants = variantsOf(schema);
  if (!variants.some(({ properties }) => properties)) return typeName(schema);
  return variants.map((each) => shape(each, marks)).join("\n\nOr:\n\n");
}

/** The fields of an object, with those of nested objects by their path. */
function rows(schema: Schema, marks: Mark, prefix = ""): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, each]) => {
    const isRequired = !!schema.required?.includes(name);
    const isMarked = isRequired === (marks === "required");
    const field = `\`${prefix}${name}\`${isMarked ? ` *${marks}*` : ""}`;
    const type = [typeName(each), ...constraints(each)].join(", ");
    const value = withoutNull(each);
    const inner = value.items
      ? rows(value.items, marks, `${prefix}${name}[].`)
      : rows(value, marks, `${prefix}${name}.`);
    return [[field, type, each.description ?? ""], ...inner];
  });
}

/** The name of a type, with links to records. */
function typeName(schema: Schema): string {
  const { $ref, type, format, items, additionalProperties: values } = schema;
  if ($ref) return `[${refName($ref)}](${$ref})`;
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(" or ");
  const variants = [...variantsOf(schema), ...(schema.allOf ?? [])];
  if (variants.length > 0) return variants.map(typeName).join(" or ");
  if (Array.isArray(type)) return type.join(" or ");
  if (items) return `list of ${typeName(items)}`;
  if (values && typeof values === "object") {
    return `map of ${typeName(schema.propertyNames ?? { type: "string" })} to ${typeName(values)}`;
  }
  return (format && formats[format]) ?? type ?? "anything";
}

const literal = (value: unknown) => `\`${JSON.stringify(value)}\``;

function withoutNull(schema: Schema): Schema {
  const others = schema.anyOf?.filter((each) => each.type !== "null");
  return others?.length === 1 && others[0] ? others[0] : schema;
}

function constraints(schema: Schema): string[] {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern } = schema;
  if (typeof pattern === "string") return [`matches \`${pattern}\``];
  return [
    range(minLength, maxLength, " characters"),
    range(minimum, maximum, ""),
    range(minItems, maxItems, " items"),
  ].filter((part) => part !== null);
}

function range(min: unknown, max: unknown, unit: string): string | null {
  const low = typeof min === "number" && (min > 0 || unit === "") ? min.toLocaleString("en") : null;
  const high = typeof max === "number" ? max.toLocaleString("en") : null;
  if (low && high) return `${low} to ${high}${unit}`;
  if (low) return `at least ${low}${unit}`;
  return high && `at most ${high}${unit}`;
}
