import { inertName, inertText, quotedText } from "@parley/protocol/markup";

export type ActionFields = Readonly<Record<string, unknown>>;

/** A pressed button or a submitted form. */
export interface ComponentInput {
  action: string;
  fields: ActionFields;
  /** The labels of the form's fields, by their names. */
  labels?: ReadonlyMap<string, string> | undefined;
  /** Username of the person who pressed or submitted. */
  by: string;
}

/**
 * The reply to a component action: Markdown with component markup, at most 32 KiB, which quotes what
 * the person sent and names them. Null for actions without a reply.
 */
export function replyToAction(input: ComponentInput): string | null {
  const { action } = input;
  if (SILENT.some((prefix) => action.startsWith(prefix))) return null;
  const shape = tokenShapes.find(({ prefix }) => action.startsWith(prefix));
  const parts = shape ? action.slice(shape.prefix.length).split(":") : [];
  const missing = shape?.parts.find((_, place) => isBlank(parts[place]));
  if (!shape || missing !== undefined) return acknowledge(input, missing);
  return shape.reply(parts, input) ?? acknowledge(input);
}

const SILENT = ["cancel:", "dismiss:"];

interface TokenShape {
  prefix: string;
  /** The parts after the prefix, separated by colons. Further parts are ignored. */
  parts: readonly string[];
  /** Returns null if a part has an invalid value. */
  reply: (parts: readonly string[], input: ComponentInput) => string | null;
}

const tokenShapes: readonly TokenShape[] = [
  { prefix: "trade:buy:", parts: ["symbol", "quantity"], reply: placeOrder("Buy") },
  { prefix: "trade:sell:", parts: ["symbol", "quantity"], reply: placeOrder("Sell") },
  { prefix: "alert:", parts: ["symbol", "condition", "value"], reply: setAlert },
  { prefix: "modify:limit", parts: [], reply: askForLimit },
  { prefix: "form_submit:", parts: ["form id"], reply: confirmForm },
];

function acknowledge({ action, by }: ComponentInput, missing?: string): string {
  const name = isBlank(action) ? "an action without a name" : `the action ${quoted(action, 80)}`;
  const problem = missing === undefined ? "" : ` Its ${missing} is missing.`;
  return `I received ${name} from @${by}.${problem}`;
}

function placeOrder(side: "Buy" | "Sell"): TokenShape["reply"] {
  return ([symbol = "", quantity = ""], { by }) =>
    card(`${side} order placed`, [
      item("Symbol", symbol),
      item("Quantity", quantity),
      item("Placed by", `@${by}`),
    ]);
}

const conditions: Readonly<Record<string, string>> = { gt: "Rises above", lt: "Falls below" };

function setAlert(
  [symbol = "", operator = "", value = ""]: readonly string[],
  input: ComponentInput,
) {
  const condition = Object.hasOwn(conditions, operator) ? conditions[operator] : undefined;
  if (condition === undefined) return null;
  return card("Alert set", [
    item("Symbol", symbol),
    item(condition, value),
    item("Set by", `@${input.by}`),
  ]);
}

function askForLimit(_: readonly string[], { by }: ComponentInput): string {
  return [
    `@${by}, what should the limit price be?`,
    "",
    '<form id="limit_price">',
    '<input name="limit_price" label="Limit price" type="number" required>',
    "</form>",
  ].join("\n");
}

/**
 * Values are shown whole if all of them fit into a message. Otherwise long values are truncated and
 * surplus fields left out.
 */
const MAX_VALUE_LENGTH = 500;
const MAX_LIST_BYTES = 28_000;
const utf8 = new TextEncoder();

/** The parts are joined again because a form's id may contain colons. */
function confirmForm(parts: readonly string[], { fields, labels, by }: ComponentInput): string {
  const entries = Object.entries(fields).map(
    ([name, value]) => [labels?.get(name) || name, value] as const,
  );
  const whole = entries.map(([name, value]) => item(name, shown(value), Number.POSITIVE_INFINITY));
  const items =
    fitting(whole).length === whole.length
      ? whole
      : fitting(entries.map(([name, value]) => item(name, shown(value))));
  const left = entries.length - items.length;
  if (left > 0) items.push(`- and ${left} more`);
  if (items.length === 0) items.push("It has no fields.");
  return card("Form submitted", [`@${by} submitted ${quoted(parts.join(":"), 64)}:`, "", ...items]);
}

function fitting(items: string[]): string[] {
  let bytes = 0;
  const tooMany = items.findIndex((each) => {
    bytes += utf8.encode(each).length + 1;
    return bytes > MAX_LIST_BYTES;
  });
  return tooMany < 0 ? items : items.slice(0, tooMany);
}

/** A submitted value as text; the items of a list are separated by commas. */
function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && !value.some(isNested)) return value.map(shown).join(", ");
  return isNested(value) ? JSON.stringify(value) : String(value);
}

const isNested = (value: unknown) => typeof value === "object" && value !== null;

/** The title is trusted text. The callers escape the values in the lines. */
const card = (title: string, lines: string[]) =>
  [`<card title="${title}">`, "", ...lines, "", "</card>"].join("\n");

/** A value of several lines is shown as a quotation below its name. */
function item(name: string, value: string, maxLength = MAX_VALUE_LENGTH): string {
  const label = `- **${inertName(shorten(name, 64).trim())}:**`;
  const text = shorten(value, maxLength).trim();
  if (isBlank(text)) return `${label} (empty)`;
  if (!/[\r\n]/.test(text)) return `${label} ${inertText(text)}`;
  return [label, ...quotedText(text).map((line) => `  ${line}`)].join("\n");
}

const quoted = (value: string, maxLength: number) => `“${inertText(shorten(value, maxLength))}”`;

const isBlank = (text = "") => text.trim() === "";

function shorten(value: string, maxLength: number): string {
  // A code point has at most two code units, so the rest need not be split.
  const characters = Array.from(value.slice(0, 2 * maxLength + 2));
  if (characters.length <= maxLength) return value;
  return `${characters.slice(0, maxLength - 1).join("")}…`;
}

const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const DECISION = new RegExp(`^call:(${UUID}):(approve|reject)$`);

/** What a token decides about a tool call. Null if the token is something else. */
export function decisionOf(action: string) {
  const [, call_id, decision] = DECISION.exec(action) ?? [];
  if (call_id === undefined) return null;
  return { call_id, decision: decision as "approve" | "reject" };
}

/** The tool that a token asks for. Null if the token is something else. */
export const askedTool = (action: string): string | null =>
  action.startsWith("tool:") && action.length > "tool:".length
    ? action.slice("tool:".length)
    : null;

/** What the ids of forms begin with that ask what a tool wants to know. */
export const FORM_PREFIX = "elicit-";

/** The action with which the form of a question is submitted. */
export const formAction = (id: string) => `form_submit:${FORM_PREFIX}${id}`;

const ANSWER = new RegExp(`^(?:form_submit|dismiss):${FORM_PREFIX}(${UUID})$`);

/** Reads an answer from an action token. Null if the token is something else. */
export function elicitationAnswer(
  action: string,
): { id: string; action: "accept" | "decline" } | null {
  const id = ANSWER.exec(action)?.[1];
  if (id === undefined) return null;
  return { id, action: action.startsWith("dismiss:") ? "decline" : "accept" };
}

/** Whether a message asks for something that a tool wants to know: its words are not the agent's. */
export const isElicitation = (content: string) => content.includes(`<form id="${FORM_PREFIX}`);
