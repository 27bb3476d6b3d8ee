import { table } from "./markdown.ts";
import { refName, type Schema, variantsOf } from "./schemas.ts";

const formats: Record<string, string> = { uuid: "UUID", "date-time": "timestamp" };

/** Which fields are marked: the required ones of a request, the optional ones of a result. */
export type Mark = "required" | "optional";

/** A table of the fields, or the name of the record that has them. */
export function shape(schema: Schema, marks: Mark): string {
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
