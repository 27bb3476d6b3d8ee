import { describe, expect, test } from "bun:test";
import { type FormBlock, parseMarkup } from "@parley/protocol/markup";
import { sendComponentAction } from "@parley/protocol/operations/components";
import { MAX_CONTENT_BYTES } from "@parley/protocol/operations/messages";
import { elicitationForm } from "../src/domain/elicitation-form.ts";
import { elicitedValues } from "../src/domain/elicitation-values.ts";

type Properties = Record<string, Record<string, unknown>>;

const contentFor = (properties: Properties) =>
  elicitationForm({
    id: "0198c0de-0000-7000-8000-000000000000",
    server: "air",
    owner: "alice",
    message: "How?",
    schema: { type: "object", properties },
  });

function fieldsShown(properties: Properties) {
  const blocks = parseMarkup(contentFor(properties));
  const form = blocks.find((block): block is FormBlock => block.type === "form");
  return (form?.children ?? []).flatMap((child) =>
    child.type === "input" || child.type === "select" ? [child] : [],
  );
}

/** What a client submits if nothing is changed. */
const unchanged = (properties: Properties) =>
  Object.fromEntries(fieldsShown(properties).map(({ name, value }) => [name, value ?? ""]));

/** As many fields with the same schema. */
const repeated = (count: number, schema: Record<string, unknown>): Properties =>
  Object.fromEntries(Array.from({ length: count }, (_, place) => [`field${place}`, schema]));

const text = (proposed: string) => ({ type: "string", title: "Text", default: proposed });
const described = (description: string) => ({ type: "string", title: "Text", description });

const isSubmittable = (fields: Record<string, string>) =>
  sendComponentAction.input.shape.fields.safeParse(fields).success;

describe("a form is asked without", () => {
  const tooLong: Record<string, Properties> = {
    "17 long defaults": repeated(17, text("x".repeat(1000))),
    "6 long defaults in Chinese": repeated(6, text("行".repeat(1000))),
    "11 long defaults in Chinese": repeated(11, text("行".repeat(1000))),
    "9 long defaults of backslashes": repeated(9, text("\\".repeat(1000))),
    "7 long defaults of ampersands": repeated(7, text("&".repeat(1000))),
    "40 long descriptions": repeated(40, described('"'.repeat(300))),
  };
  test.each(Object.entries(tooLong))("%s", (_, properties) => {
    expect(Buffer.byteLength(contentFor(properties))).toBeLessThanOrEqual(MAX_CONTENT_BYTES);
    const shown = fieldsShown(properties).map(({ name, value, hint }) => [name, value, hint]);
    const bare = Object.keys(properties).map((name) => [name, undefined, undefined]);
    expect(shown).toEqual(bare);
    expect(isSubmittable(unchanged(properties))).toBe(true);
  });
});

test("descriptions that fit are shown if the defaults do not", () => {
  const properties = repeated(17, { ...text("x".repeat(1000)), description: "Long" });
  expect(fieldsShown(properties).map(({ value, hint }) => [value, hint])).toEqual(
    Array.from({ length: 17 }, () => [undefined, "Long"]),
  );
});

test("defaults that fit are shown, and leave room for the other answers", () => {
  const properties = { ...repeated(7, text("x".repeat(1000))), other: described("Short") };
  expect(fieldsShown(properties).map(({ value, hint }) => [value?.length, hint])).toEqual([
    ...Array.from({ length: 7 }, () => [1000, undefined]),
    [undefined, "Short"],
  ]);
  expect(isSubmittable({ ...unchanged(properties), other: "x".repeat(8000) })).toBe(true);
});

const meals = { type: "array", title: "Meals", items: { type: "string", enum: ["fish", "soup"] } };

describe("a default is not shown that is", () => {
  const unfit: Record<string, Record<string, unknown>> = {
    "a text with a line break": text("one\ntwo"),
    "a text with a tab": text("one\ttwo"),
    "a text that is not Unicode": text("one \ud83d"),
    "a part of a number": { type: "integer", default: 2.5 },
    "a number below the minimum": { type: "number", minimum: 5, default: 1 },
    "a number above the maximum": { type: "number", maximum: 5, default: 9 },
    "not a date": { type: "string", format: "date", default: "tomorrow" },
    "not an address": { type: "string", format: "email", default: "nobody" },
    "a text that is too short": { type: "string", minLength: 5, default: "abc" },
    "a list with too few choices": { ...meals, minItems: 1, default: [] },
    "a list with one choice twice": { ...meals, minItems: 2, default: ["soup", "soup"] },
    "a list with too many choices": { ...meals, maxItems: 1, default: ["fish", "soup"] },
    "a list with an unknown choice": { ...meals, default: ["soup", "cake"] },
  };
  test.each(Object.entries(unfit))("%s", (_, field) => {
    expect(fieldsShown({ field }).map(({ value }) => value)).not.toContainEqual(expect.anything());
    expect(elicitedValues({ properties: { field } }, unchanged({ field }))).toEqual({
      content: {},
    });
  });
});

describe("an answer is refused with all that it must be:", () => {
  const unfit: [string, Record<string, unknown>, string][] = [
    ["a whole number, at least 2, at most 5", { type: "integer", minimum: 2, maximum: 5 }, "2.5"],
    ["a whole number", { type: "integer" }, "9007199254740993"],
    ["a number, at most 5", { type: "number", maximum: 5, pattern: "(a+)+$" }, "0x5"],
    ["a text, characters at most: 2", { type: "string", maxLength: 2 }, "😀😀😀"],
    ["a text, with the format date", { type: "string", format: "date" }, "2026-02-31"],
    ["a text, with the format uri", { type: "string", format: "uri" }, "example"],
  ];
  test.each(unfit)("%s", (wanted, field, given) => {
    const wrong = { field: `must be ${wanted}` };
    expect(elicitedValues({ properties: { field } }, { field: given })).toEqual({ wrong });
  });
});

test("an answer is accepted whose characters count as one each, and whose pattern only the tool checks", () => {
  const properties = {
    name: { type: "string", maxLength: 2, pattern: "^[a-z]+$" },
    mail: { type: "string", format: "email" },
    kind: { type: ["string", "null"], format: "__proto__" },
  };
  const fields = { name: "😀😀", mail: "alice@localhost", kind: "any" };
  expect(elicitedValues({ properties }, fields)).toEqual({ content: fields });
});

test("defaults that are submitted unchanged are what the tool proposed", () => {
  const proposed = {
    text: '  `one` & <two> \\ "three" 😀 ',
    count: 0,
    price: 1e21,
    day: "2026-11-17",
    lines: "a\nb",
    crossed: "x",
    meals: ["fish", "soup"],
    nothing: [],
  };
  const properties: Properties = {
    text: { type: "string", default: proposed.text },
    count: { type: "integer", default: proposed.count },
    price: { type: "number", default: proposed.price },
    day: { type: "string", format: "date", default: proposed.day },
    lines: { type: "string", enum: [proposed.lines, "c"], default: proposed.lines },
    crossed: { type: "string", enum: ["x", "y"], enumNames: ["y", "x"], default: "x" },
    meals: { ...meals, default: ["soup", "fish"] },
    nothing: { ...meals, default: proposed.nothing },
  };
  expect(elicitedValues({ properties }, unchanged(properties))).toEqual({ content: proposed });
});

test("texts of a tool are cut between characters", () => {
  const long = `x${"😀".repeat(2000)}`;
  const content = elicitationForm({
    id: "0198c0de-0000-7000-8000-000000000000",
    server: "air",
    owner: "alice",
    message: long,
    schema: { properties: { field: { title: long, description: long } } },
  });
  expect(content).not.toContain("\ufffd");
  const [field] = fieldsShown({ field: { title: long, description: long } });
  expect(field?.hint).toBe(`x${"😀".repeat(149)}…`);
});

test("half of a character in a text of a tool does not reach the message", () => {
  const content = elicitationForm({
    id: "0198c0de-0000-7000-8000-000000000000",
    server: "air",
    owner: "alice",
    message: "a\ud83db",
    schema: { properties: { field: { title: "a\ud83db", description: "a\ud83db" } } },
  });
  expect(content.isWellFormed()).toBe(true);
});

test("characters that reorder a text of a tool are shown as escapes", () => {
  const schema = {
    type: "string",
    title: "Pay \u202eyob",
    description: "\u2066hint",
    default: "\u202emoc",
  };
  const choices = { type: "string", enum: ["\u202eno"] };
  const content = elicitationForm({
    id: "0198c0de-0000-7000-8000-000000000000",
    server: "air",
    owner: "alice",
    message: "Pay \u202emoc.live\u202c? نمی\u200cخواهم 👩\u200d💻",
    schema: { type: "object", description: "\u200fAll", properties: { schema, choices } },
  });
  expect(content).not.toMatch(/[\u200f\u202a-\u202e\u2066-\u2069]/);
  expect(content).toContain("\\u202emoc.live\\u202c? نمی\u200cخواهم 👩\u200d💻");
  expect(fieldsShown({ schema })).toEqual([
    expect.objectContaining({ label: "Pay \\u202eyob", hint: "\\u2066hint" }),
  ]);
  expect(unchanged({ schema })).toEqual({ schema: "" });
  const answer = { choices: "\\u202eno" };
  expect(fieldsShown({ choices })).toMatchObject([{ options: [answer.choices] }]);
  expect(elicitedValues({ properties: { choices } }, answer)).toEqual({
    content: { choices: "\u202eno" },
  });
});

test("choices with equal titles can be told apart, whatever the other titles are", () => {
  const seat = { type: "string", enum: ["1", "2", "3"], enumNames: ["a", "a", "a (1)"] };
  const [field] = fieldsShown({ seat });
  const labels = field?.type === "select" ? field.options : [];
  expect(labels).toEqual(["a (4)", "a (2)", "a (1)"]);
});
