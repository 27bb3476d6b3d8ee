import { describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import fc from "fast-check";
import { appendDeltas, byteLength, type Delta } from "../src/model/append-deltas.ts";
import { aMessage } from "./support/records.ts";

const empty: Message = aMessage({ content: "", finalized_at: null });

/** The deltas of a text, as a server would send them. */
function deltasOf(parts: readonly string[]): Delta[] {
  let content = "";
  return parts.map((delta) => {
    content += delta;
    return { delta, offset: Buffer.byteLength(content) };
  });
}

describe("appending deltas", () => {
  test("places them by byte offset", () => {
    let message = empty;
    for (const delta of deltasOf(["naïve ", "café ", "日本", "🦜"])) {
      const appended = appendDeltas(message, [delta]);
      expect(appended.early).toEqual([]);
      message = appended.message;
    }
    expect(message.content).toBe("naïve café 日本🦜");
    expect(byteLength(message)).toBe(Buffer.byteLength("naïve café 日本🦜"));
  });

  test("ignores duplicates, and returns the same object", () => {
    const [first] = deltasOf(["one"]) as [Delta];
    const { message } = appendDeltas(empty, [first]);
    expect(appendDeltas(message, [first]).message).toBe(message);
  });

  test("returns a delta that leaves a gap as early", () => {
    const [, second] = deltasOf(["one ", "two"]) as [Delta, Delta];
    expect(appendDeltas(empty, [second])).toEqual({ message: empty, early: [second] });
  });

  test("appends the rest of a delta whose beginning is known", () => {
    const message = { ...empty, content: "日本" };
    const { content } = appendDeltas(message, [{ delta: "日本語", offset: 9 }]).message;
    expect(content).toBe("日本語");
  });

  test("results in the whole text for any order and any duplicates", () => {
    const parts = fc.array(fc.string({ unit: "grapheme", maxLength: 5 }), { maxLength: 20 });
    const order = fc.array(fc.nat(1000), { maxLength: 60 });
    fc.assert(
      fc.property(parts, order, (texts, picks) => {
        const deltas = deltasOf(texts);
        const picked = picks.flatMap((pick) => deltas[pick % Math.max(deltas.length, 1)] ?? []);
        let message = empty;
        let early: readonly Delta[] = [];
        for (const delta of [...picked, ...deltas]) {
          ({ message, early } = appendDeltas(message, [...early, delta]));
          expect(texts.join("").startsWith(message.content)).toBe(true);
        }
        expect(message.content).toBe(texts.join(""));
        expect(early).toEqual([]);
      }),
    );
  });
});
