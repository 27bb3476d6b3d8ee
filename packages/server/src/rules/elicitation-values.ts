import {
  type Choice,
  choiceName,
  type Question,
  questionsOf,
  YES_OR_NO,
} from "./elicitation-fields.ts";

type Values = Readonly<Record<string, unknown>>;

/** The values of a form, or what is wrong with them, by the names of the properties. */
export type ElicitedValues =
  | { readonly content: Record<string, unknown> }
  | { readonly wrong: Record<string, string> };

/**
 * Reads the fields of a form by the schema that a tool asked with. Forms have texts only, and values
 * may be given by their labels. The `pattern` of a schema is left to the server: it could take forever.
 */
export function elicitedValues(schema: Values, fields: Values): ElicitedValues {
  const content: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  for (const question of questionsOf(schema)) {
    const given = givenTo(question, fields);
    if (given === undefined) {
      if (question.isRequired) wrong[question.name] = "is required";
      continue;
    }
    const read = question.isMultiple ? severalOf(question, given) : singleOf(question, given);
    if ("problem" in read) wrong[question.name] = read.problem;
    else content[question.name] = read.value;
  }
  return Object.keys(wrong).length > 0 ? { wrong } : { content };
}

type Read = { readonly value: unknown } | { readonly problem: string };

/** What was answered; undefined if nothing was. */
function givenTo(question: Question, fields: Values): unknown {
  const { name, isMultiple, choices } = question;
  const given = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (!isMultiple || Array.isArray(given)) return given === "" ? undefined : (given ?? undefined);
  const answers = (choices ?? []).map((_, place) => fields[choiceName(question, place)]);
  if (answers.every((each) => each === undefined || each === "")) return undefined;
  return (choices ?? [])
    .filter((_, place) => chosen(YES_OR_NO, answers[place])?.value === true)
    .map(({ value }) => value);
}

function severalOf({ choices, schema }: Question, given: unknown): Read {
  const taken = (Array.isArray(given) ? given : []).map((each) => chosen(choices ?? [], each));
  if (!Array.isArray(given) || taken.includes(undefined)) {
    return { problem: "must be some of the choices" };
  }
  const { minItems, maxItems } = schema;
  if (typeof minItems === "number" && taken.length < minItems) {
    return { problem: `must have at least ${minItems} of the choices` };
  }
  if (typeof maxItems === "number" && taken.length > maxItems) {
    return { problem: `must have at most ${maxItems} of the choices` };
  }
  return { value: [...new Set(taken.map((each) => each?.value))] };
}

const chosen = (choices: readonly Choice[], given: unknown): Choice | undefined =>
  choices.find(({ label }) => label === given) ??
  choices.find(({ value }) => value === given || `${value}` === given);

function singleOf({ choices, schema }: Question, given: unknown): Read {
  if (choices) {
    const choice = chosen(choices, given);
    return choice ? { value: choice.value } : { problem: "must be one of the choices" };
  }
  const isNumber = schema.type === "number" || schema.type === "integer";
  return isNumber ? numberOf(schema, given) : textOf(schema, given);
}

function numberOf({ type, minimum, maximum }: Values, given: unknown): Read {
  const value = typeof given === "string" && given.trim() !== "" ? Number(given) : given;
  if (typeof value !== "number" || !Number.isFinite(value)) return { problem: "must be a number" };
  if (type === "integer" && !Number.isSafeInteger(value)) {
    return { problem: "must be a whole number" };
  }
  if (typeof minimum === "number" && value < minimum) {
    return { problem: `must be at least ${minimum}` };
  }
  if (typeof maximum === "number" && value > maximum) {
    return { problem: `must be at most ${maximum}` };
  }
  return { value };
}

function textOf({ minLength, maxLength, format }: Values, given: unknown): Read {
  if (typeof given !== "string") return { problem: "must be a text" };
  const length = [...given].length;
  if (typeof minLength === "number" && length < minLength) {
    return { problem: `must have at least ${minLength} characters` };
  }
  if (typeof maxLength === "number" && length > maxLength) {
    return { problem: `must have at most ${maxLength} characters` };
  }
  const isFormat = formats.get(`${format}`);
  return isFormat && !isFormat(given)
    ? { problem: `must have the format ${format}` }
    : { value: given };
}

const formats = new Map<string, (text: string) => boolean>([
  ["email", (text) => /^[^\s@]+@[^\s@]+$/.test(text)],
  ["uri", (text) => URL.canParse(text)],
  ["date", (text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))],
  ["date-time", (text) => /^\d{4}-\d{2}-\d{2}T/.test(text) && !Number.isNaN(Date.parse(text))],
]);
