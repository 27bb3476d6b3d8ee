import { expect, test } from "bun:test";
import { sendComponentAction } from "../src/operations/components.ts";

/** Fields of the given number of levels; calls `visit` when something reads below the last one. */
function fieldsOf(levels: number, visit: () => void): Record<string, unknown> {
  let value: Record<string, unknown> = {
    get a() {
      visit();
      return 1;
    },
  };
  for (let level = 1; level < levels; level++) value = { a: value };
  return value;
}

const parse = (fields: object) => {
  const id = Bun.randomUUIDv7();
  return sendComponentAction.input.safeParse({
    chat_id: id,
    message_id: id,
    action: "form_submit:f",
    fields,
  });
};

test("fields may have 32 levels", () => {
  expect(parse(fieldsOf(32, () => {})).success).toBe(true);
});

test("fields of more levels are refused without reading them", () => {
  let visits = 0;
  const { error } = parse(fieldsOf(33, () => visits++));
  expect(error?.issues.map(({ path, message }) => [path, message])).toEqual([
    [["fields"], "must be nested at most 32 levels deep"],
  ]);
  expect(visits).toBe(0);
});
