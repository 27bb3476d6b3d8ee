import { inertName, quotedText } from "@parley/protocol/markup";
import { MAX_CONTENT_BYTES } from "@parley/protocol/operations/messages";
import { FORM_PREFIX } from "../rules/action-tokens.ts";
import {
  beginning,
  type Choice,
  choiceName,
  type Question,
  questionsOf,
  YES_OR_NO,
} from "../rules/elicitation-fields.ts";
import { visibleText } from "../rules/quoting.ts";
import { isAccepted } from "./elicitation-values.ts";

type Schema = Readonly<Record<string, unknown>>;

interface Asked {
  readonly id: string;
  /** The name of the tool server. */
  readonly server: string;
  /** The username of the agent's owner. */
  readonly owner: string;
  readonly message: string;
  readonly schema: Schema;
}

const MAX_MESSAGE_CHARACTERS = 2000;
/** As many as clients let people type. A part of a default would be something else. */
const MAX_VALUE_CHARACTERS = 1000;
/** Half of what may be submitted, so that there is room for the answers without a default. */
const MAX_PREFILLED_BYTES = 8192;

/**
 * A form that asks the owner of an agent what a tool wants to know. The texts of the tool are quoted.
 * The fields have no values if these are too long to be submitted, and neither values nor hints if the
 * message would be too long.
 */
export function elicitationForm(asked: Asked): string {
  const proposed = questionsOf(asked.schema).flatMap(fieldsOf);
  const prefilledBytes = Buffer.byteLength(JSON.stringify(unchanged(proposed)));
  const fields = prefilledBytes > MAX_PREFILLED_BYTES ? proposed.map(withoutValue) : proposed;
  const form = formMarkup(asked, fields);
  if (Buffer.byteLength(form) <= MAX_CONTENT_BYTES) return form;
  const bare = fields.map((field) => ({ ...withoutValue(field), hint: null }));
  return formMarkup(asked, bare);
}

function formMarkup({ id, server, owner, message, schema }: Asked, fields: readonly Field[]) {
  const { description } = schema;
  const asked = typeof description === "string" ? `${message}\n\n${description}` : message;
  return [
    `@${owner}, the tool server **${inertName(server)}** asks:`,
    "",
    ...quotedText(visibleText(beginning(asked, MAX_MESSAGE_CHARACTERS))),
    "",
    `<form id="${FORM_PREFIX}${id}">`,
    ...fields.map(fieldMarkup),
    '<button action="submit">Submit</button>',
    `<button action="dismiss:${FORM_PREFIX}${id}">Decline</button>`,
    "</form>",
  ].join("\n");
}

type Field = Pick<Question, "name" | "label" | "hint" | "isRequired" | "schema" | "choices"> & {
  readonly value: string | null;
};

/** With the default, if the form could be submitted with it. */
function fieldsOf(question: Question): Field[] {
  const fields = question.isMultiple
    ? multipleChoice(question, question.choices ?? [])
    : [{ ...question, value: proposedValue(question) }];
  return isAccepted(question, unchanged(fields)) ? fields : fields.map(withoutValue);
}

/** What a client submits if nothing is typed. */
const unchanged = (fields: readonly Field[]) =>
  Object.fromEntries(fields.map(({ name, value }) => [name, value ?? ""]));

const withoutValue = (field: Field): Field => ({ ...field, value: null });

/** Each choice is a question of its own. The first one has the description of all. */
function multipleChoice(question: Question, choices: readonly Choice[]): Field[] {
  const { label, hint, schema, proposed } = question;
  const isProposed =
    Array.isArray(proposed) && proposed.every((each) => labelIn(choices, each) !== null);
  return choices.map((choice, place) => ({
    name: choiceName(question, place),
    label: `${label}: ${choice.label}`,
    hint: place === 0 ? hint : null,
    value: isProposed ? labelIn(YES_OR_NO, proposed.includes(choice.value)) : null,
    isRequired: false,
    schema,
    choices: YES_OR_NO,
  }));
}

/** The default as the field shows it; null if there is none that the field could have. */
function proposedValue({ choices, schema, proposed }: Question): string | null {
  if (choices) return labelIn(choices, proposed);
  if (inputType(schema) === "number") return Number.isFinite(proposed) ? `${proposed}` : null;
  return typeof proposed === "string" && isFieldText(proposed) ? proposed : null;
}

/** Whether a field can have it unaltered, and shows all of it. */
const isFieldText = (text: string) =>
  text.length <= MAX_VALUE_CHARACTERS && !/\p{Cc}/u.test(text) && visibleText(text) === text;

const labelIn = (choices: readonly Choice[], value: unknown) =>
  choices.find((choice) => choice.value === value)?.label ?? null;

function fieldMarkup(field: Field): string {
  const { choices, schema } = field;
  if (!choices) return `<input ${attributes(field)} type="${inputType(schema)}">`;
  const options = choices.map((choice) => `<option>${escaped(choice.label)}</option>`);
  return `<select ${attributes(field)}>${options.join("")}</select>`;
}

const attributes = ({ name, label, hint, value, isRequired }: Field) =>
  [
    `name="${escaped(name)}" label="${escaped(label)}"`,
    ...(hint ? [`hint="${escaped(hint)}"`] : []),
    ...(value ? [`value="${escaped(value)}"`] : []),
    ...(isRequired ? ["required"] : []),
  ].join(" ");

function inputType({ type, format }: Schema): string {
  if (type === "number" || type === "integer") return "number";
  return format === "email" || format === "date" ? String(format) : "text";
}

const escaped = (text: string) =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ")
    .toWellFormed();
