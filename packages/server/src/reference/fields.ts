import { type Html, html, joined, words } from "./html.ts";
import { refName, type Schema, variantsOf } from "./schemas.ts";

interface Row {
  field: string;
  schema: Schema;
  required: boolean;
}

const formats: Record<string, string> = { uuid: "UUID", "date-time": "timestamp" };

/** Which fields are marked: the required ones of a request, the optional ones of a result. */
export type Mark = "required" | "optional";

/** A table of the fields of an object, with the fields of nested objects by their path. */
export function fieldTable(schema: Schema, marks: Mark): Html {
  return html`<table class="fields">
<thead><tr><th scope="col">Field</th><th scope="col">Type</th><th scope="col">Description</th></tr></thead>
<tbody>${rows(schema).map((row) => fieldRow(row, marks))}</tbody>
</table>`;
}

function fieldRow({ field, schema, required }: Row, marks: Mark): Html {
  const marked = required === (marks === "required");
  const limits = constraints(schema);
  return html`<tr>
<th scope="row"><code>${path(field)}</code>${marked && html` <span class="mark ${marks}">${marks}</span>`}</th>
<td>${typeName(schema)}${limits && html` <small>${limits}</small>`}</td>
<td>${words(schema.description ?? "")}</td>
</tr>`;
}

/** Allows line breaks after the dots of a path. */
const path = (field: string) => field.split(".").map((part, at) => [at > 0 && html`.<wbr>`, part]);

function rows(schema: Schema, prefix = ""): Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, each]) => {
    const field = prefix + name;
    const required = !!schema.required?.includes(name);
    const value = withoutNull(each);
    const inner = value.items ? rows(value.items, `${field}[].`) : rows(value, `${field}.`);
    return [{ field, schema: each, required }, ...inner];
  });
}

/** The name of a type, with links to records. */
export function typeName(schema: Schema): Html {
  const { $ref, type, format, items, additionalProperties: values } = schema;
  if ($ref) return html`<a href="${$ref}">${refName($ref)}</a>`;
  if (schema.const !== undefined) return html`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum) return joined(schema.enum.map(literal), " or ");
  const variants = [...variantsOf(schema), ...(schema.allOf ?? [])];
  if (variants.length > 0) return joined(variants.map(typeName), " or ");
  if (Array.isArray(type)) return html`${type.join(" or ")}`;
  if (items) return html`list of ${typeName(items)}`;
  if (values && typeof values === "object") {
    return html`map of ${typeName(schema.propertyNames ?? { type: "string" })} to ${typeName(values)}`;
  }
  return html`${(format && formats[format]) ?? type ?? "anything"}`;
}

const literal = (value: unknown) => html`<code>${JSON.stringify(value)}</code>`;

function withoutNull(schema: Schema): Schema {
  const others = schema.anyOf?.filter((each) => each.type !== "null");
  return others?.length === 1 && others[0] ? others[0] : schema;
}

function constraints(schema: Schema): Html | null {
  const { minLength, maxLength, minimum, maximum, minItems, maxItems, pattern } = schema;
  const parts = [
    range(minLength, maxLength, "characters"),
    range(minimum, maximum, ""),
    range(minItems, maxItems, "items"),
  ].filter((part) => part !== null);
  if (typeof pattern === "string") return html`matches <code>${pattern}</code>`;
  return parts.length > 0 ? html`${parts.join(", ")}` : null;
}

function range(min: unknown, max: unknown, unit: string): string | null {
  const number = (value: unknown) => Number(value).toLocaleString("en");
  const low = typeof min === "number" && (min > 0 || unit === "") ? number(min) : null;
  const high = typeof max === "number" ? number(max) : null;
  const text =
    low && high ? `${low} to ${high}` : low ? `at least ${low}` : high ? `at most ${high}` : null;
  return text && `${text} ${unit}`.trim();
}
