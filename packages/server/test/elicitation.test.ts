import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { createElicitations } from "../src/agents/tools/elicitation.ts";
import type { Store } from "../src/store/store.ts";
import type { ToolCallRecord } from "../src/store/tool-calls.ts";

const call = {} as ToolCallRecord;
const question = { message: "How?", schema: { type: "object", properties: {} } };

/** A store that posts every question and has the answer to it. */
const answering = (answer: object | null) =>
  ({ write: async () => true, read: async () => ({ answer }) }) as unknown as Store;

test("a question of a call that has been aborted is not waited for", async () => {
  const ask = createElicitations(answering(null)).ask(call, AbortSignal.abort());
  expect(await ask(question)).toEqual({ action: "cancel" });
});

test("a question whose answer is known leaves nothing behind", async () => {
  const { signal } = new AbortController();
  const ask = createElicitations(answering({ action: "decline" })).ask(call, signal);
  expect(await ask(question)).toEqual({ action: "decline" });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
