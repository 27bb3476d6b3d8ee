import { describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import fc from "fast-check";
import { appendDeltas, byteLength, type Delta } from "../src/model/stream.ts";
import { aMessage } from "./support/records.ts";

const empty: Message = aMessage({ content: "", finalized_at: null });

/** The chunks of a text, as a server would send them. */
function chunksOf(parts: readonly string[]): Delta[] {
  let content = "";
  return parts.map((delta) => {
    content += delta;
    return { delta, offset: Buffer.byteLength(content) };
  });
}

describe("a stream", () => {
  test("grows chunk by chunk, counted in bytes", () => {
    let message = empty;
    for (const delta of chunksOf(["naïve ", "café ", "日本", "🦜"])) {
      const appended = appendDeltas(message, [delta]);
      expect(appended.early).toEqual([]);
      message = appended.message;
    }
    expect(message.content).toBe("naïve café 日本🦜");
    expect(byteLength(message)).toBe(Buffer.byteLength("naïve café 日本🦜"));
  });

  test("ignores a chunk that came before, and is then the same object", () => {
    const [first] = chunksOf(["one"]) as [Delta];
    const { message } = appendDeltas(empty, [first]);
    expect(appendDeltas(message, [first]).message).toBe(message);
  });

  test("holds back a chunk that came too early", () => {
    const [, second] = chunksOf(["one ", "two"]) as [Delta, Delta];
    expect(appendDeltas(empty, [second])).toEqual({ message: empty, early: [second] });
  });

  test("takes the rest of a chunk of which it has the beginning", () => {
    const message = { ...empty, content: "日本" };
    const { content } = appendDeltas(message, [{ delta: "日本語", offset: 9 }]).message;
    expect(content).toBe("日本語");
  });

  test("comes out whole whatever the order and however often its chunks come", () => {
    const parts = fc.array(fc.string({ unit: "grapheme", maxLength: 5 }), { maxLength: 20 });
    const order = fc.array(fc.nat(1000), { maxLength: 60 });
    fc.assert(
      fc.property(parts, order, (texts, picks) => {
        const chunks = chunksOf(texts);
        const picked = picks.flatMap((pick) => chunks[pick % Math.max(chunks.length, 1)] ?? []);
        let message = empty;
        let early: readonly Delta[] = [];
        for (const chunk of [...picked, ...chunks]) {
          ({ message, early } = appendDeltas(message, [...early, chunk]));
          expect(texts.join("").startsWith(message.content)).toBe(true);
        }
        expect(message.content).toBe(texts.join(""));
        expect(early).toEqual([]);
      }),
    );
  });
});
