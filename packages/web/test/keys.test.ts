import { expect, test } from "bun:test";
import { cleanKey, keyDoubt, keyProblem } from "../src/agents/keys.ts";

const ANTHROPIC = `sk-ant-api03-${"a1B2".repeat(20)}`;
const OPENAI = `sk-proj-${"a1B2".repeat(20)}`;

test("text that is copied along with a key is removed", () => {
  for (const text of [
    ` ${ANTHROPIC}\n`,
    `"${ANTHROPIC}"`,
    `ANTHROPIC_API_KEY=${ANTHROPIC}`,
    `export ANTHROPIC_API_KEY='${ANTHROPIC}'`,
    `Bearer ${ANTHROPIC}`,
  ]) {
    expect(cleanKey(text)).toBe(ANTHROPIC);
  }
});

test("text that cannot be a key is refused", () => {
  for (const text of ["", "two words", "sk-ant-…abcd", "sk-•••abcd", "sk-ключ", "x".repeat(1025)]) {
    expect([text, keyProblem(text) === null]).toEqual([text, false]);
  }
  for (const text of [ANTHROPIC, OPENAI, "sandbox", "x"]) expect(keyProblem(text)).toBeNull();
});

test("a key with an unusual format is questioned, not refused", () => {
  expect(keyDoubt("claude", ANTHROPIC)).toBeNull();
  expect(keyDoubt("gpt", OPENAI)).toBeNull();
  expect(keyDoubt("claude", OPENAI)).toContain("sk-ant-");
  expect(keyDoubt("gpt", ANTHROPIC)).toContain("sk-");
  expect(keyDoubt("gpt", "hello")).not.toBeNull();
  expect(keyDoubt("claude", "sandbox")).toBeNull();
  expect(keyDoubt("llama", "any-key-of-a-gateway")).toBeNull();
  expect(keyDoubt("llama", "short")).toContain("shorter");
});
