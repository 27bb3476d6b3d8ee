import { inertText, quotedText } from "@parley/protocol/markup";

type Schema = Readonly<Record<string, unknown>>;

interface Question {
  readonly id: string;
  /** The name of the tool server. */
  readonly server: string;
  /** The username of the agent's owner. */
  readonly owner: string;
  readonly message: string;
  readonly schema: Schema;
}

const MAX_FIELDS = 20;
const MAX_OPTIONS = 50;
const MAX_MESSAGE_CHARACTERS = 2000;
const PREFIX = "elicit-";
const ANSWER = /^(?:form_submit|dismiss):elicit-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** A form that asks the owner of an agent what a tool wants to know. The texts of the tool are quoted. */
export function elicitationForm({ id, server, owner, message, schema }: Question): string {
  const fields = Object.entries(propertiesOf(schema)).slice(0, MAX_FIELDS);
  const required = Array.isArray(schema.required) ? schema.required : [];
  return [
    `@${owner}, the tool server **${inertText(server)}** asks:`,
    "",
    ...quotedText(message.slice(0, MAX_MESSAGE_CHARACTERS).toWellFormed()),
    "",
    `<form id="${PREFIX}${id}">`,
    ...fields.map(([name, field]) => fieldMarkup(name, field, required.includes(name))),
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

const propertiesOf = ({ properties }: Schema): Record<string, Schema> =>
  isObject(properties)
    ? Object.fromEntries(
        Object.entries(properties).map(([name, field]) => [name, isObject(field) ? field : {}]),
      )
    : {};

const isObject = (value: unknown): value is Schema => typeof value === "object" && value !== null;

function fieldMarkup(name: string, field: Schema, isRequired: boolean): string {
  const [text = name] = [field.title, field.description].filter((each) => typeof each === "string");
  const label = attribute(text.slice(0, 200));
  const shared = `name="${attribute(name)}" label="${label}"${isRequired ? " required" : ""}`;
  const options = field.type === "boolean" ? ["true", "false"] : field.enum;
  if (!Array.isArray(options)) return `<input ${shared} type="${inputType(field)}">`;
  const shown = options
    .filter((each) => !isObject(each))
    .slice(0, MAX_OPTIONS)
    .map((each) => `<option>${attribute(String(each))}</option>`);
  return `<select ${shared}>${shown.join("")}</select>`;
}

function inputType({ type, format }: Schema): string {
  if (type === "number" || type === "integer") return "number";
  return format === "email" || format === "date" ? String(format) : "text";
}

const attribute = (text: string) =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll('"', "&quot;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ")
    .toWellFormed();

/** The values of a form with the types that the tool asked for: forms have texts only. */
export function elicitedValues(
  schema: Schema,
  fields: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const properties = propertiesOf(schema);
  const given = Object.entries(fields).filter(
    ([name, value]) => Object.hasOwn(properties, name) && value !== "" && value !== null,
  );
  return Object.fromEntries(
    given.map(([name, value]) => [name, typedValue(properties[name] ?? {}, value)]),
  );
}

function typedValue({ type }: Schema, value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (type === "boolean") return value === "true";
  const isNumber = (type === "number" || type === "integer") && value.trim() !== "";
  return isNumber && Number.isFinite(Number(value)) ? Number(value) : value;
}
