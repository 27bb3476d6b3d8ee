import { expect, test } from "bun:test";
import { deltas } from "../src/agents/deltas.ts";
import { type Change, frameOf } from "../src/changes/change.ts";
import type { Store, WriteTx } from "../src/store/store.ts";
import type { TurnRecord } from "../src/store/turns.ts";

/** A store whose notes take their time, and end in any order; what they told by message. */
function slowStore() {
  const told = new Map<string, string>();
  const moment = () => Bun.sleep(1 + Math.random() * 5);
  const note = async (unit: (tx: WriteTx) => unknown) => {
    const announcements: Change[] = [];
    await moment();
    const tx = {
      appendChunks: () => [],
      signal: (each: Change) => announcements.push(each),
    } as unknown as WriteTx;
    const result = await unit(tx);
    await moment();
    for (const each of announcements) {
      const frame = each.kind === "event" ? frameOf(each) : null;
      if (frame?.method !== "events.messageDelta") continue;
      const { id, delta } = frame.params;
      told.set(id, (told.get(id) ?? "") + delta);
    }
    return result;
  };
  return { told, store: { note } as unknown as Store };
}

test("a stream ends when all of it was told, in order, however long others take", async () => {
  const { told, store } = slowStore();
  const streams = deltas(store, "node");
  const answers = Array.from({ length: 60 }, async (_, id) => {
    const turn = { id, message_uuid: `${id}`, conversation_uuid: "room" } as TurnRecord;
    const stream = streams.open(turn, new AbortController());
    let said = "";
    for (let count = 0; count < 30; count++) {
      await stream.backpressure();
      const word = `${id}.${count} `;
      said += word;
      stream.write(word);
      if (Math.random() < 0.5) await Bun.sleep(Math.random() * 4);
    }
    await stream.end();
    expect(stream.written()).toBe(said);
    expect(told.get(`${id}`)).toBe(said);
  });
  await Promise.all(answers);
});
