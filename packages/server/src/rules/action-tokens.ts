import { escapeMarkup } from "@parley/protocol/markup";

export type ActionFields = Record<string, string | number | boolean>;

/**
 * What the agent answers to a pressed button or a submitted form, as Markdown with component
 * markup of at most 32 KiB. Null: it answers nothing.
 */
export function replyToAction(action: string, fields: ActionFields): string | null {
  const shape = tokenShapes.find(({ prefix }) => action.startsWith(prefix));
  if (shape) return shape.reply(action.slice(shape.prefix.length), fields);
  return action.trim() === ""
    ? "I received an action without a name."
    : `I received the action ${quoted(action, 80)}.`;
}

interface TokenShape {
  prefix: string;
  /** `rest` is what follows the prefix. */
  reply: (rest: string, fields: ActionFields) => string | null;
}

/** The first whose prefix fits answers, so the longer prefix stands first. */
const tokenShapes: TokenShape[] = [
  { prefix: "trade:buy:", reply: (rest) => placeOrder("Buy", rest) },
  { prefix: "trade:sell:", reply: (rest) => placeOrder("Sell", rest) },
  { prefix: "trade:", reply: explainSide },
  { prefix: "alert:", reply: setAlert },
  { prefix: "modify:limit", reply: askForLimit },
  { prefix: "form_submit:", reply: confirmForm },
  { prefix: "cancel:", reply: () => null },
  { prefix: "dismiss:", reply: () => null },
];

function placeOrder(side: "Buy" | "Sell", rest: string): string {
  const [symbol, quantity] = splitOff(rest);
  const problem =
    symbolProblem(symbol) ??
    (quantity === "" ? "the quantity is missing" : null) ??
    (isPositive(quantity) ? null : `the quantity ${quoted(quantity)} is not a positive number`);
  if (problem) return `I could not place the ${side.toLowerCase()} order: ${problem}.`;
  return card(`${side} order placed`, [item("Symbol", symbol), item("Quantity", quantity)]);
}

function explainSide(rest: string): string {
  const [side] = splitOff(rest);
  return `I could not place the order: ${sideProblem(side)}.`;
}

function sideProblem(side: string): string {
  if (side === "") return "it does not say whether to buy or to sell";
  // With a colon after it, the side would have had a shape of its own.
  if (side === "buy" || side === "sell") return "the symbol and the quantity are missing";
  return `${quoted(side)} is neither buy nor sell`;
}

const conditions = new Map([
  ["gt", "rises above"],
  ["lt", "falls below"],
]);

function setAlert(rest: string): string {
  const [symbol, comparison] = splitOff(rest);
  const [operator, value] = splitOff(comparison);
  const condition = conditions.get(operator);
  const problem =
    symbolProblem(symbol) ??
    (operator === "" ? "the condition is missing; it is gt (above) or lt (below)" : null) ??
    (condition ? null : `the condition ${quoted(operator)} is neither gt (above) nor lt (below)`) ??
    (value === "" ? "the value is missing" : null) ??
    (parseNumber(value) === null ? `the value ${quoted(value)} is not a number` : null);
  if (problem) return `I could not set the alert: ${problem}.`;
  const sentence = `Alert when **${escapeMarkup(symbol)}** ${condition} ${escapeMarkup(value)}.`;
  return card("Alert set", [sentence]);
}

function askForLimit(): string {
  return [
    "What should the limit price be?",
    "",
    '<form id="limit_price">',
    '<input name="limit_price" label="Limit price" type="number" required>',
    "</form>",
  ].join("\n");
}

/** Values are cut, and fields left off, well before the reply outgrows a message. */
const MAX_VALUE_LENGTH = 500;
const MAX_LIST_BYTES = 28_000;
const utf8 = new TextEncoder();

function confirmForm(id: string, fields: ActionFields): string {
  if (id.trim() === "") return "I could not take the form: its id is missing.";
  const entries = Object.entries(fields);
  const items = fitting(entries.map(([name, value]) => item(shorten(name, 64), String(value))));
  const left = entries.length - items.length;
  if (left > 0) items.push(`- and ${left} more`);
  if (items.length === 0) items.push("It has no fields.");
  return card("Form submitted", [`Form ${quoted(id, 64)}`, "", ...items]);
}

function fitting(items: string[]): string[] {
  let bytes = 0;
  const tooMany = items.findIndex((each) => {
    bytes += utf8.encode(each).length + 1;
    return bytes > MAX_LIST_BYTES;
  });
  return tooMany < 0 ? items : items.slice(0, tooMany);
}

/** Titles are ours; lines have their values escaped. */
const card = (title: string, lines: string[]) =>
  [`<card title="${title}">`, "", ...lines, "", "</card>"].join("\n");

const item = (name: string, value: string) =>
  `- **${escapeMarkup(name)}:** ${escapeMarkup(shorten(value, MAX_VALUE_LENGTH)) || "(empty)"}`;

const quoted = (value: string, maxLength = 32) => `“${escapeMarkup(shorten(value, maxLength))}”`;

function shorten(value: string, maxLength: number): string {
  // No character takes more than two units, so the rest need not be looked at.
  const characters = Array.from(value.slice(0, 2 * maxLength + 2));
  if (characters.length <= maxLength) return value;
  return `${characters.slice(0, maxLength - 1).join("")}…`;
}

function splitOff(text: string): [first: string, rest: string] {
  const colon = text.indexOf(":");
  return colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
}

function symbolProblem(symbol: string): string | null {
  if (symbol === "") return "the symbol is missing";
  return /^[A-Za-z0-9.^=-]{1,16}$/.test(symbol) ? null : `${quoted(symbol)} is not a symbol`;
}

function parseNumber(text: string): number | null {
  const decimal = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
  if (text.length > 32 || !decimal.test(text)) return null;
  const number = Number(text);
  return Number.isFinite(number) ? number : null;
}

const isPositive = (text: string) => (parseNumber(text) ?? 0) > 0;
