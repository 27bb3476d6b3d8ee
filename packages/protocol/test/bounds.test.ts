import { describe, expect, spyOn, test } from "bun:test";
import { operations } from "../src/index.ts";

const id = Bun.randomUUIDv7();
const MANY = 20_000;
/** An object with many wrong names. */
const wide = Object.fromEntries(Array.from({ length: MANY }, (_, name) => [`${name}`, -1]));

const { getUpdates, sendComponentAction, upsertUsers, setMessageReaction, ...others } = operations;
const action = { chat_id: id, message_id: id, action: "form_submit:f" };

describe("entries are counted before any of them is validated", () => {
  const tooMany: Record<string, [{ success: boolean; error?: { issues: object[] } }, number]> = {
    known: [getUpdates.input.safeParse({ known: wide }), 10_000],
    fields: [sendComponentAction.input.safeParse({ ...action, fields: wide }), 50],
    metadata: [upsertUsers.input.safeParse({ users: [{ external_id: "a", metadata: wide }] }), 32],
  };
  for (const [field, [{ error }, max]] of Object.entries(tooMany)) {
    test(`in the field ${field}`, () => {
      expect(error?.issues).toMatchObject([{ message: `must have at most ${max} entries` }]);
    });
  }

  test("and as many as are allowed are accepted", () => {
    const known = Object.fromEntries(
      Array.from({ length: 10_000 }, () => [Bun.randomUUIDv7(), 1] as const),
    );
    expect(getUpdates.input.safeParse({ known }).data).toEqual({ known });
  });
});

describe("items are counted before any of them is validated", () => {
  const items = Array.from({ length: MANY }, () => ({}));
  const lists = {
    message_ids: others.deleteMessages.input.safeParse({ chat_id: id, message_ids: items }),
    usernames: others.getUsers.input.safeParse({ usernames: items }),
    users: upsertUsers.input.safeParse({ users: items }),
    grants: others.setAgentTools.input.safeParse({ agent_username: "a:b", grants: items }),
  };
  for (const [field, { error }] of Object.entries(lists)) {
    test(`in the field ${field}`, () => {
      expect(error?.issues).toMatchObject([{ code: "too_big", path: [field] }]);
    });
  }
});

describe("long texts are refused before", () => {
  test("they are read as an emoji", () => {
    using replaced = spyOn(String.prototype, "replace");
    const emoji = "1".repeat(250_000);
    const { error } = setMessageReaction.input.safeParse({ message_id: id, emoji });
    expect(replaced).not.toHaveBeenCalled();
    expect(error?.issues).toMatchObject([{ message: "must be exactly one emoji" }]);
  });

  test("they are compared with reserved names", () => {
    using normalized = spyOn(String.prototype, "normalize");
    const name = "admin".repeat(50_000);
    const parsed = [
      others.signUp.input.safeParse({ username: name, password: "correct horse" }),
      others.createAgent.input.safeParse({ name, kind: "external" }),
      others.createIncomingHook.input.safeParse({ chat_id: id, name }),
    ];
    expect(normalized).not.toHaveBeenCalled();
    for (const { error } of parsed) {
      expect(error?.issues).toMatchObject([{ code: "invalid_format" }]);
    }
  });
});

test("characters outside of the basic plane count once, however long the text is", () => {
  const parse = (query: string) => others.searchMessages.input.safeParse({ query }).success;
  expect([256, 257, 100_000].map((count) => parse("😀".repeat(count)))).toEqual([
    true,
    false,
    false,
  ]);
});
