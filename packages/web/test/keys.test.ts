import { expect, test } from "bun:test";
import { cleanKey, doubtAbout, whyNoKey } from "../src/agents/keys.ts";

const ANTHROPIC = `sk-ant-api03-${"a1B2".repeat(20)}`;
const OPENAI = `sk-proj-${"a1B2".repeat(20)}`;

test("what is copied along with a key is left out", () => {
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

test("what cannot be a key is refused", () => {
  for (const text of ["", "two words", "sk-ant-…abcd", "sk-•••abcd", "sk-ключ", "x".repeat(1025)]) {
    expect([text, whyNoKey(text) === null]).toEqual([text, false]);
  }
  for (const text of [ANTHROPIC, OPENAI, "sandbox", "x"]) expect(whyNoKey(text)).toBeNull();
});

test("a key of another shape than usual is asked about, and never refused", () => {
  expect(doubtAbout("claude", ANTHROPIC)).toBeNull();
  expect(doubtAbout("gpt", OPENAI)).toBeNull();
  expect(doubtAbout("claude", OPENAI)).toContain("sk-ant-");
  expect(doubtAbout("gpt", ANTHROPIC)).toContain("sk-");
  expect(doubtAbout("gpt", "hello")).not.toBeNull();
  expect(doubtAbout("claude", "sandbox")).toBeNull();
  expect(doubtAbout("llama", "any-key-of-a-gateway")).toBeNull();
  expect(doubtAbout("llama", "short")).toContain("shorter");
});
