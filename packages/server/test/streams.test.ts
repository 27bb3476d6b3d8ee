import { describe, expect, test } from "bun:test";
import type { EventFrame } from "@parley/protocol";
import type { EventChange } from "../src/changes/change.ts";
import { streams } from "../src/realtime/streams.ts";
import { event } from "./support/changes.ts";

const CHAT = "chat";
const packet = (frame: object, conversation = CHAT) =>
  event({ frame: frame as EventFrame, to: { conversation } });

const placeholder = (id = "m") =>
  packet({ method: "events.messageNew", params: { id, content: "", finalized_at: null } });
const delta = (text: string, offset: number, id = "m") =>
  packet({ method: "events.messageDelta", params: { id, delta: text, offset } });
const complete = (content: string, id = "m") =>
  packet({ method: "events.messageComplete", params: { id, content } });

/** What is delivered, in short. */
function listener(read?: (message: string) => Promise<string | null>) {
  const heard: unknown[] = [];
  const told = streams({
    deliver: ({ data }: EventChange) => {
      const { method, params } = JSON.parse(data);
      if (method === "events.messageDelta") heard.push([params.delta, params.offset]);
      else heard.push(method === "events.messageNew" ? "new" : `complete ${params.content}`);
    },
    ...(read && { read }),
  });
  const hear = (...packets: EventChange[]) => packets.forEach(told.receive);
  return { heard, hear, forget: told.forget };
}

/** A store that answers when it is told to. */
function heldStore() {
  const asked: ((content: string | null) => void)[] = [];
  return {
    read: () => new Promise<string | null>((resolve) => void asked.push(resolve)),
    asked,
    answer: async (content: string | null) => {
      asked.shift()?.(content);
      await Bun.sleep(0);
    },
  };
}

describe("the deltas of an answer", () => {
  test("pass as they come when they come in order", () => {
    const { heard, hear } = listener();
    hear(placeholder(), delta("Grü", 4), delta("ße", 7), complete("Grüße"));
    expect(heard).toEqual(["new", ["Grü", 4], ["ße", 7], "complete Grüße"]);
  });

  test("that come after its end are dropped, and their text goes before it", () => {
    const { heard, hear } = listener();
    hear(placeholder(), delta("Grü", 4), complete("Grüße"), delta("ße", 7));
    expect(heard).toEqual(["new", ["Grü", 4], ["ße", 7], "complete Grüße"]);
  });

  test("that were never sent come right before its end", () => {
    const { heard, hear } = listener();
    hear(placeholder(), complete("No key."), placeholder("n"), complete("", "n"));
    expect(heard).toEqual(["new", ["No key.", 7], "complete No key.", "new", "complete "]);
  });

  test("that overtake its beginning do not keep it away, and are told again after it", async () => {
    const store = heldStore();
    const { heard, hear } = listener(store.read);
    hear(delta("b", 2), placeholder(), delta("c", 3));
    await store.answer("abc");
    hear(delta("d", 4), complete("abcd"));
    expect(heard).toEqual([["b", 2], "new", ["abc", 3], ["d", 4], "complete abcd"]);
  });

  test("that come twice are delivered once", () => {
    const { heard, hear } = listener();
    hear(placeholder(), delta("a", 1), delta("a", 1), delta("b", 2), delta("a", 1));
    expect(heard).toEqual(["new", ["a", 1], ["b", 2]]);
  });

  test("after a gap are left to its end where nothing can be read", () => {
    const { heard, hear } = listener();
    hear(placeholder(), delta("a", 1), delta("c", 3), delta("d", 4), complete("abcd"));
    expect(heard).toEqual(["new", ["a", 1], ["bcd", 4], "complete abcd"]);
  });

  test("that are missing are read from the store, with those that come meanwhile", async () => {
    const store = heldStore();
    const { heard, hear } = listener(store.read);
    hear(placeholder(), delta("a", 1), delta("c", 3), delta("d", 4));
    expect(store.asked).toHaveLength(1);
    await store.answer("abc");
    await store.answer("abcd");
    hear(delta("e", 5), complete("abcde"));
    expect(heard).toEqual(["new", ["a", 1], ["bc", 3], ["d", 4], ["e", 5], "complete abcde"]);
    expect(store.asked).toHaveLength(0);
  });

  test("are not read once it has ended", async () => {
    const store = heldStore();
    const { heard, hear } = listener(store.read);
    hear(placeholder(), delta("b", 2), complete("ab"));
    await store.answer("ab");
    expect(heard).toEqual(["new", ["ab", 2], "complete ab"]);
  });

  test("are looked for again with the next one when the store could not be read", async () => {
    const store = heldStore();
    const { heard, hear } = listener(store.read);
    hear(placeholder(), delta("b", 2));
    await store.answer(null);
    hear(delta("c", 3));
    await store.answer("abc");
    expect(heard).toEqual(["new", ["abc", 3]]);
  });

  test("that began before anybody listened here pass from where they are", () => {
    const { heard, hear, forget } = listener();
    hear(delta("b", 2), delta("c", 3), complete("abc"));
    hear(placeholder("n"), delta("a", 1, "n"));
    forget(CHAT);
    hear(delta("c", 3, "n"), complete("abc", "n"));
    expect(heard).toEqual([
      ["b", 2],
      ["c", 3],
      "complete abc",
      "new",
      ["a", 1],
      ["c", 3],
      "complete abc",
    ]);
  });

  test("of one answer have nothing to do with those of another", () => {
    const { heard, hear } = listener();
    hear(placeholder("m"), placeholder("n"), delta("a", 1, "m"), delta("x", 1, "n"));
    hear(complete("ab", "m"), complete("xy", "n"));
    expect(heard).toEqual([
      ...["new", "new", ["a", 1], ["x", 1]],
      ...[["b", 2], "complete ab", ["y", 2], "complete xy"],
    ]);
  });
});
