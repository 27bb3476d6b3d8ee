import { expect, test } from "bun:test";
import { AnswerWriter } from "../src/agent/answer-writer.ts";
import { callError } from "../src/errors.ts";

test("text of an answer whose reply was lost is stored once, and more can follow", async () => {
  let stored = "";
  let lostReplies = 1;
  const write = async (delta: string, offset: number) => {
    const length = Buffer.byteLength(stored);
    if (offset !== length) throw callError("conflict", "must begin there", { offset: length });
    stored += delta;
    if (lostReplies-- > 0) throw callError("unavailable", "no reply", { retry_after: 0.001 });
    return { offset: Buffer.byteLength(stored) };
  };
  const lost: unknown[] = [];
  const writer = new AnswerWriter({ write, onLost: (error) => lost.push(error) });
  await writer.write("naïve ");
  await writer.write("café");
  await writer.end();
  writer.close(new Error("the answer has ended"));
  expect(stored).toBe("naïve café");
  expect(lost).toEqual([]);
});
