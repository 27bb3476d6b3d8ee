import { inertText, quotedText } from "@parley/protocol/markup";
import {
  type Choice,
  choiceName,
  type Question,
  questionsOf,
  YES_OR_NO,
} from "./elicitation-fields.ts";

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
const PREFIX = "elicit-";

/** The action with which the form of a question is submitted. */
export const formAction = (id: string) => `form_submit:${PREFIX}${id}`;

const ANSWER = /^(?:form_submit|dismiss):elicit-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** A form that asks the owner of an agent what a tool wants to know. The texts of the tool are quoted. */
export function elicitationForm({ id, server, owner, message, schema }: Asked): string {
  const { description } = schema;
  const asked = typeof description === "string" ? `${message}\n\n${description}` : message;
  return [
    `@${owner}, the tool server **${inertText(server)}** asks:`,
    "",
    ...quotedText(asked.slice(0, MAX_MESSAGE_CHARACTERS).toWellFormed()),
    "",
    `<form id="${PREFIX}${id}">`,
    ...questionsOf(schema).flatMap(fieldMarkup),
    "</form>",
    "",
    `<button action="dismiss:${PREFIX}${id}">Decline</button>`,
  ].join("\n");
}

/** Whether a message asks for something that a tool wants to know: its words are not the agent's. */
export const isElicitation = (content: string) => content.includes(`<form id="${PREFIX}`);

/** Reads an answer from an action token. Null if the token is something else. */
export function elicitationAnswer(
  action: string,
): { id: string; action: "accept" | "decline" } | null {
  const id = ANSWER.exec(action)?.[1];
  if (id === undefined) return null;
  return { id, action: action.startsWith("dismiss:") ? "decline" : "accept" };
}

interface Field {
  readonly name: string;
  readonly label: string;
  readonly hint: string | null;
  readonly value: string | null;
  readonly isRequired: boolean;
}

function fieldMarkup(question: Question): string[] {
  const { choices, isMultiple, schema } = question;
  if (isMultiple) return multipleChoice(question, choices ?? []);
  const field = { ...question, value: proposedValue(question) };
  if (choices) return [select(field, choices)];
  return [`<input ${attributes(field)} type="${inputType(schema)}">`];
}

/** Each choice is a question of its own. The first one has the description of all. */
function multipleChoice(question: Question, choices: readonly Choice[]): string[] {
  const { label, hint, proposed } = question;
  return choices.map((choice, place) => {
    const isProposed = Array.isArray(proposed) && proposed.includes(choice.value);
    const field = {
      name: choiceName(question, place),
      label: `${label}: ${choice.label}`,
      hint: place === 0 ? hint : null,
      value: Array.isArray(proposed) ? labelIn(YES_OR_NO, isProposed) : null,
      isRequired: false,
    };
    return select(field, YES_OR_NO);
  });
}

/** The default as the field shows it; null if there is none that the field could have. */
function proposedValue({ choices, schema, proposed }: Question): string | null {
  if (choices) return labelIn(choices, proposed);
  if (inputType(schema) === "number") return Number.isFinite(proposed) ? `${proposed}` : null;
  return typeof proposed === "string" && proposed.length <= MAX_VALUE_CHARACTERS ? proposed : null;
}

const labelIn = (choices: readonly Choice[], value: unknown) =>
  choices.find((choice) => choice.value === value)?.label ?? null;

function select(field: Field, choices: readonly Choice[]) {
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
