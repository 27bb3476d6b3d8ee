/** What a tool asks for with a JSON Schema, as the fields of a form can ask for it. */

import { FieldName, MAX_FIELDS } from "@parley/protocol/operations/components";
import { visibleText } from "./quoting.ts";

type Schema = Readonly<Record<string, unknown>>;

/** One of the values that a field may have. */
export interface Choice {
  readonly value: unknown;
  /** Shown instead of the value. No two choices of a field have the same. */
  readonly label: string;
}

/** A property of the schema. */
export interface Question {
  readonly name: string;
  readonly label: string;
  /** The description of the property, unless that is the label; null if there is none. */
  readonly hint: string | null;
  readonly isRequired: boolean;
  readonly schema: Schema;
  /** The default of the property. It may not be what the schema allows. */
  readonly proposed: unknown;
  /** Null: anything of the right type. */
  readonly choices: readonly Choice[] | null;
  /** Whether several choices may be taken. Forms have no field for that: each choice is a field. */
  readonly isMultiple: boolean;
}

const MAX_LABEL_CHARACTERS = 200;
const MAX_HINT_CHARACTERS = 300;

export const YES_OR_NO: readonly Choice[] = [
  { value: true, label: "Yes" },
  { value: false, label: "No" },
];

export function questionsOf({ properties, required, default: defaults }: Schema): Question[] {
  const names = Array.isArray(required) ? required : [];
  const proposals = new Map(isObject(defaults) ? Object.entries(defaults) : []);
  return Object.entries(isObject(properties) ? properties : {}).map(([name, property]) => {
    const schema = isObject(property) ? property : {};
    const several = schema.type === "array" ? choicesOf(schema.items) : null;
    const [label = name, hint] = [schema.title, schema.description].filter(isText);
    return {
      name,
      label: labelOf(label),
      hint: hint === undefined ? null : hintOf(hint),
      isRequired: names.includes(name),
      schema,
      proposed: schema.default ?? proposals.get(name),
      choices: several ?? choicesOf(schema),
      isMultiple: several !== null,
    };
  });
}

/** The name of the field for one of several choices. */
export const choiceName = ({ name }: Question, place: number) => `${name}#${place + 1}`;

/** Why no form can ask for what the schema describes; null if one can. */
export function formProblem(schema: Schema): string | null {
  const names = questionsOf(schema).flatMap(fieldNames);
  if (names.length > MAX_FIELDS) return `The form has more than ${MAX_FIELDS} fields.`;
  if (new Set(names).size < names.length) return "Two fields of the form have the same name.";
  return names.every(isFieldName)
    ? null
    : "The form has a field whose name is empty, too long or has characters that no field may have.";
}

const fieldNames = (question: Question): string[] =>
  question.isMultiple
    ? (question.choices ?? []).map((_, place) => choiceName(question, place))
    : [question.name];

/** Markup has no line breaks and control characters in names, and requests no `__proto__`. */
const isFieldName = (name: string) =>
  FieldName.safeParse(name).success && name !== "__proto__" && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name);

/** The values of a schema that lists them. Null if it lists none that a form can show. */
function choicesOf(schema: unknown): Choice[] | null {
  if (!isObject(schema)) return null;
  if (schema.type === "boolean") return [...YES_OR_NO];
  const choices = listedValues(schema)
    .filter(([value]) => isText(value) || typeof value === "number")
    .map(([value, title]) => ({ value, label: labelOf(isText(title) ? title : `${value}`) }));
  return choices.length > 0 ? distinct(choices) : null;
}

/** Values with their titles, in one of the ways of the MCP specification. */
function listedValues({ oneOf, anyOf, enum: values, enumNames }: Schema): [unknown, unknown][] {
  const titled = [oneOf, anyOf].find(Array.isArray);
  if (titled) return titled.filter(isObject).map((each) => [each.const, each.title]);
  const names = Array.isArray(enumNames) ? enumNames : [];
  return (Array.isArray(values) ? values : []).map((value, place) => [value, names[place]]);
}

/** Choices with the same label are told apart by numbers, which give no label that another one has. */
function distinct(choices: readonly Choice[]): Choice[] {
  const counts = new Map<string, number>();
  for (const { label } of choices) counts.set(label, (counts.get(label) ?? 0) + 1);
  return choices.map((choice, place) => {
    let { label } = choice;
    if (counts.get(label) === 1) return choice;
    for (let number = place + 1; counts.has(label); number += choices.length) {
      label = `${choice.label} (${number})`;
    }
    return { ...choice, label };
  });
}

/** As clients show it and send it back: one line, without spaces at its ends. */
const labelOf = (text: string) => singleLine(beginning(text, MAX_LABEL_CHARACTERS)) || "—";

const hintOf = (text: string) =>
  singleLine(beginning(text, MAX_HINT_CHARACTERS)) + (text.length > MAX_HINT_CHARACTERS ? "…" : "");

/** Not cut inside a surrogate pair. */
export const beginning = (text: string, length: number) =>
  text.slice(0, length).replace(/[\ud800-\udbff]$/, "");

const singleLine = (text: string) =>
  visibleText(text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp} ]+/gu, " ")).trim();

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isText = (value: unknown): value is string => typeof value === "string";
