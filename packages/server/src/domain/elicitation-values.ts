import {
  type Choice,
  choiceName,
  type Question,
  questionsOf,
  YES_OR_NO,
} from "./elicitation-fields.ts";

type Values = Readonly<Record<string, unknown>>;

/** The values of a form by the names of the properties, or what is wrong with them by those of the fields. */
export type ElicitedValues =
  | { readonly content: Record<string, unknown> }
  | { readonly wrong: Record<string, string> };

/**
 * Reads the fields of a form by the schema that a tool asked with. Forms have texts only, and values
 * may be given by their labels. The `pattern` of a schema is left to the server: it could take forever.
 */
export const elicitedValues = (schema: Values, fields: Values): ElicitedValues =>
  valuesFor(questionsOf(schema), fields);

/** Whether a form with this one question could be submitted with these fields. */
export const isAccepted = (question: Question, fields: Values): boolean =>
  "content" in valuesFor([question], fields);

function valuesFor(questions: readonly Question[], fields: Values): ElicitedValues {
  const content: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  for (const question of questions) {
    const field = fieldOf(question, fields);
    const unclear = unclearChoices(question, fields);
    for (const name of unclear) wrong[name] = NOT_A_CHOICE;
    if (unclear.length > 0) continue;
    const given = givenTo(question, fields);
    if (given === undefined) {
      if (question.isRequired) wrong[field] = "is required";
      continue;
    }
    const read = question.isMultiple ? severalOf(question, given) : singleOf(question, given);
    if ("problem" in read) wrong[field] = read.problem;
    else content[question.name] = read.value;
  }
  return Object.keys(wrong).length > 0 ? { wrong } : { content };
}

type Read = { readonly value: unknown } | { readonly problem: string };

const NOT_A_CHOICE = "must be one of the choices";

/** The field that a question is asked with: the first one if each choice has one and no list is given. */
const fieldOf = (question: Question, fields: Values): string =>
  question.isMultiple && !Array.isArray(fields[question.name])
    ? choiceName(question, 0)
    : question.name;

/** The fields of choices that are neither taken nor left. */
function unclearChoices(question: Question, fields: Values): string[] {
  if (!question.isMultiple || Array.isArray(fields[question.name])) return [];
  return (question.choices ?? [])
    .map((_, place) => choiceName(question, place))
    .filter((name) => !isBlank(fields[name]) && !chosen(YES_OR_NO, fields[name]));
}

const isBlank = (given: unknown) => given === undefined || given === null || given === "";

/** What was answered; undefined if nothing was. */
function givenTo(question: Question, fields: Values): unknown {
  const { name, isMultiple, choices } = question;
  const given = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (!isMultiple || Array.isArray(given)) return isBlank(given) ? undefined : given;
  const answers = (choices ?? []).map((_, place) => fields[choiceName(question, place)]);
  if (answers.every(isBlank)) return undefined;
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
    return choice ? { value: choice.value } : { problem: NOT_A_CHOICE };
  }
  const isNumber = schema.type === "number" || schema.type === "integer";
  return isNumber ? numberOf(schema, given) : textOf(schema, given);
}

/** Not the other notations that `Number` reads, such as `0x10`. */
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

function numberOf({ type, minimum, maximum }: Values, given: unknown): Read {
  const value = typeof given === "string" && DECIMAL.test(given.trim()) ? Number(given) : given;
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
  ["date", isDate],
  ["date-time", (text) => isDate(text.slice(0, 10)) && text[10] === "T" && isTime(text)],
]);

/** Whether the calendar has the day: `Date.parse` may read the 31st of February as a day of March. */
function isDate(text: string): boolean {
  const isWritten = /^\d{4}-\d{2}-\d{2}$/.test(text) && isTime(text);
  return isWritten && new Date(text).toISOString().startsWith(text);
}

function isTime(text: string): boolean {
  return !Number.isNaN(Date.parse(text));
}
