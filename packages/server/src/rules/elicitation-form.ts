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
const PREFIX = "elicit-";

/** The action with which the form of a question is submitted. */
export const formAction = (id: string) => `form_submit:${PREFIX}${id}`;

const ANSWER = /^(?:form_submit|dismiss):elicit-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** A form that asks the owner of an agent what a tool wants to know. The texts of the tool are quoted. */
export function elicitationForm({ id, server, owner, message, schema }: Asked): string {
  return [
    `@${owner}, the tool server **${inertText(server)}** asks:`,
    "",
    ...quotedText(message.slice(0, MAX_MESSAGE_CHARACTERS).toWellFormed()),
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

function fieldMarkup(question: Question): string[] {
  const { name, label, isRequired, choices, isMultiple, schema } = question;
  if (isMultiple) {
    return (choices ?? []).map((choice, place) => {
      const each = `${label}: ${choice.label}`;
      return select(choiceName(question, place), each, false, YES_OR_NO);
    });
  }
  if (choices) return [select(name, label, isRequired, choices)];
  return [`<input ${attributes(name, label, isRequired)} type="${inputType(schema)}">`];
}

function select(name: string, label: string, isRequired: boolean, choices: readonly Choice[]) {
  const options = choices.map((choice) => `<option>${escaped(choice.label)}</option>`);
  return `<select ${attributes(name, label, isRequired)}>${options.join("")}</select>`;
}

const attributes = (name: string, label: string, isRequired: boolean) =>
  `name="${escaped(name)}" label="${escaped(label)}"${isRequired ? " required" : ""}`;

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
