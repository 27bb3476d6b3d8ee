import { expect, test } from "bun:test";
import { createDeltas } from "../src/agents/deltas.ts";
import { type Change, frameOf } from "../src/changes/change.ts";
import type { Store, WriteTx } from "../src/store/store.ts";
import type { TurnRecord } from "../src/store/turns.ts";

const NODE = "node";

const turnRecord = (id: number) =>
  ({ id, message_uuid: `${id}`, conversation_uuid: "conversation" }) as TurnRecord;

/** A store whose units take a random time and commit in any order. */
function slowStore() {
  /** The deltas that were sent, concatenated by message. */
  const sent = new Map<string, string>();
  const randomDelay = () => Bun.sleep(1 + Math.random() * 5);
  const note = async (unit: (tx: WriteTx) => unknown) => {
    const changes: Change[] = [];
    await randomDelay();
    const tx = {
      appendChunks: () => [],
      signal: (change: Change) => changes.push(change),
    } as unknown as WriteTx;
    const result = await unit(tx);
    await randomDelay();
    for (const change of changes) {
      const frame = change.kind === "event" ? frameOf(change) : null;
      if (frame?.method !== "events.messageDelta") continue;
      const { id, delta } = frame.params;
      sent.set(id, (sent.get(id) ?? "") + delta);
    }
    return result;
  };
  return { sent, store: { note } as unknown as Store };
}

test("end() resolves after all text was sent in order, however slow the store is", async () => {
  const { sent, store } = slowStore();
  const streams = createDeltas(store, NODE);
  const answers = Array.from({ length: 60 }, async (_, id) => {
    const stream = streams.open(turnRecord(id), new AbortController());
    let written = "";
    for (let count = 0; count < 30; count++) {
      await stream.backpressure();
      const word = `${id}.${count} `;
      written += word;
      stream.write(word);
      if (Math.random() < 0.5) await Bun.sleep(Math.random() * 4);
    }
    await stream.end();
    expect(stream.written()).toBe(written);
    expect(sent.get(`${id}`)).toBe(written);
  });
  await Promise.all(answers);
});

test("a failed write rejects end() and later writes", async () => {
  const failure = new Error("the store is full");
  const store = { note: () => Promise.reject(failure) } as unknown as Store;
  const stream = createDeltas(store, NODE).open(turnRecord(1), new AbortController());
  stream.write("one");
  await expect(stream.end()).rejects.toBe(failure);
  expect(() => stream.write("two")).toThrow(failure);
});

test("a turn that was ended elsewhere aborts its call and sends nothing", async () => {
  const sent: Change[] = [];
  const tx = { appendChunks: () => [1], signal: (change: Change) => sent.push(change) };
  const note = async (unit: (tx: WriteTx) => unknown) => unit(tx as unknown as WriteTx);
  const call = new AbortController();
  const stream = createDeltas({ note } as unknown as Store, NODE).open(turnRecord(1), call);
  stream.write("one");
  await stream.end();
  expect(call.signal.aborted).toBe(true);
  expect(sent).toEqual([]);
});
