import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import {
  type Choice,
  choiceName,
  type Question,
  questionsOf,
  YES_OR_NO,
} from "../rules/elicitation-fields.ts";

type Values = Readonly<Record<string, unknown>>;

/** The values of a form by the names of the properties, or what is wrong with them by those of the fields. */
export type ElicitedValues =
  | { readonly content: Record<string, unknown> }
  | { readonly wrong: Record<string, string> };

/**
 * Reads the fields of a form by the schema that a tool asked with. Forms have texts only, and values
 * may be given by their labels.
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
    const unclear = unclearChoices(question, fields);
    for (const name of unclear) wrong[name] = NOT_A_CHOICE;
    if (unclear.length > 0) continue;
    const given = givenTo(question, fields);
    const value = given === undefined ? undefined : answerTo(question, given);
    const problem = problemWith(question, given, value);
    // If each choice has a field, the first one is named.
    const name = isSpread(question, fields) ? choiceName(question, 0) : question.name;
    if (problem !== null) wrong[name] = problem;
    else if (value !== undefined) content[question.name] = value;
  }
  return Object.keys(wrong).length > 0 ? { wrong } : { content };
}

const NOT_A_CHOICE = "must be one of the choices";

/** Whether each choice of a question is a field, and they are given one by one. */
const isSpread = ({ isMultiple, name }: Question, fields: Values) =>
  isMultiple && !Array.isArray(fields[name]);

/** The fields of choices that are neither taken nor left. */
const unclearChoices = (question: Question, fields: Values): string[] =>
  (isSpread(question, fields) ? (question.choices ?? []) : [])
    .map((_, place) => choiceName(question, place))
    .filter((name) => !isBlank(fields[name]) && !chosen(YES_OR_NO, fields[name]));

const isBlank = (given: unknown) => given === undefined || given === null || given === "";

/** What was answered; undefined if nothing was. */
function givenTo(question: Question, fields: Values): unknown {
  const { name, choices } = question;
  if (!isSpread(question, fields)) {
    const given = Object.hasOwn(fields, name) ? fields[name] : undefined;
    return isBlank(given) ? undefined : given;
  }
  const answers = (choices ?? []).map((_, place) => fields[choiceName(question, place)]);
  if (answers.every(isBlank)) return undefined;
  return (choices ?? [])
    .filter((_, place) => chosen(YES_OR_NO, answers[place])?.value === true)
    .map(({ value }) => value);
}

const chosen = (choices: readonly Choice[], given: unknown): Choice | undefined =>
  choices.find(({ label }) => label === given) ??
  choices.find(({ value }) => value === given || `${value}` === given);

/** Not the other notations that `Number` reads, such as `0x10`. */
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;

/** The value that was meant; undefined if it is none of the choices. */
function answerTo({ choices, isMultiple, schema }: Question, given: unknown): unknown {
  if (isMultiple) {
    const taken = (given as unknown[]).map((each) => chosen(choices ?? [], each));
    return taken.includes(undefined) ? undefined : [...new Set(taken.map((each) => each?.value))];
  }
  if (choices) return chosen(choices, given)?.value;
  if (typeof given !== "string" || !isNumber(schema) || !DECIMAL.test(given.trim())) return given;
  const value = Number(given);
  // A number that cannot be kept as it was typed stays a text, which is refused.
  const isKept = schema.type === "integer" ? Number.isSafeInteger(value) : Number.isFinite(value);
  return isKept ? value : given;
}

function problemWith(question: Question, given: unknown, value: unknown): string | null {
  const { choices, isMultiple, isRequired } = question;
  if (given === undefined) return isRequired ? "is required" : null;
  if (value === undefined) return isMultiple ? "must be some of the choices" : NOT_A_CHOICE;
  if (choices && !isMultiple) return null;
  const checked = checkedPart(question);
  return validators.getValidator(checked)(value).valid ? null : wanted(checked);
}

const validators = new CfWorkerJsonSchemaValidator();

/** What a value is checked by. The `pattern` of a schema is left to the server: it could take forever. */
function checkedPart({ schema, isMultiple }: Question): Values {
  const bounds = Object.keys(BOUNDS).filter((name) => typeof schema[name] === "number");
  return {
    type: isMultiple ? "array" : isNumber(schema) ? schema.type : "string",
    ...Object.fromEntries(bounds.map((name) => [name, schema[name]])),
    ...(FORMATS.includes(schema.format) && { format: schema.format }),
  };
}

const isNumber = ({ type }: Values) => type === "number" || type === "integer";

const FORMATS: readonly unknown[] = ["email", "uri", "date", "date-time"];

const TYPES = new Map<unknown, string>([
  ["number", "a number"],
  ["integer", "a whole number"],
  ["array", "a list"],
]);

const BOUNDS: Readonly<Record<string, string>> = {
  minimum: "at least",
  maximum: "at most",
  minLength: "characters at least:",
  maxLength: "characters at most:",
  minItems: "choices at least:",
  maxItems: "choices at most:",
};

/** All that a value is checked by, in words: `must be a whole number, at least 3, at most 9`. */
function wanted(checked: Values): string {
  const bounds = Object.entries(BOUNDS).filter(([name]) => name in checked);
  return [
    `must be ${TYPES.get(checked.type) ?? "a text"}`,
    ...(checked.format === undefined ? [] : [`with the format ${checked.format}`]),
    ...bounds.map(([name, words]) => `${words} ${checked[name]}`),
  ].join(", ");
}
