import { describe, expect, test } from "bun:test";
import type { EventFrame } from "@parley/protocol";
import type { EventChange } from "../src/changes/change.ts";
import { createStreams } from "../src/changes/streams.ts";
import { event } from "./support/changes.ts";

const CHAT = "chat";
const eventIn = (frame: object, conversation = CHAT) =>
  event({ frame: frame as EventFrame, to: { conversation } });

const placeholder = (id = "m") =>
  eventIn({ method: "events.messageNew", params: { id, content: "", finalized_at: null } });
const delta = (text: string, offset: number, id = "m") =>
  eventIn({ method: "events.messageDelta", params: { id, delta: text, offset } });
const complete = (content: string, id = "m") =>
  eventIn({ method: "events.messageComplete", params: { id, content } });

/** Streams, and a short form of what they deliver. */
function testStreams(read?: (message: string) => Promise<string | null>) {
  const delivered: unknown[] = [];
  const made = createStreams({
    deliver: ({ data }: EventChange) => {
      const { method, params } = JSON.parse(data);
      if (method === "events.messageDelta") delivered.push([params.delta, params.offset]);
      else delivered.push(method === "events.messageNew" ? "new" : `complete ${params.content}`);
    },
    ...(read && { read }),
  });
  const receive = (...events: EventChange[]) => {
    for (const event of events) made.receive(event);
  };
  const { readStored } = made;
  return {
    delivered,
    receive,
    readStored: readStored.bind(made),
    forget: (conversation: string) => made.forget(conversation),
  };
}

/** A store whose reads wait until `answer` is called. */
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

describe("deltas of a streaming message", () => {
  test("deltas that arrive in order are delivered unchanged", () => {
    const { delivered, receive } = testStreams();
    receive(placeholder(), delta("Grü", 4), delta("ße", 7), complete("Grüße"));
    expect(delivered).toEqual(["new", ["Grü", 4], ["ße", 7], "complete Grüße"]);
  });

  test("deltas that arrive after the end are dropped, and their text is delivered before the end", () => {
    const { delivered, receive } = testStreams();
    receive(placeholder(), delta("Grü", 4), complete("Grüße"), delta("ße", 7));
    expect(delivered).toEqual(["new", ["Grü", 4], ["ße", 7], "complete Grüße"]);
  });

  test("text without deltas is delivered as one delta right before the end", () => {
    const { delivered, receive } = testStreams();
    receive(placeholder(), complete("No key."), placeholder("n"), complete("", "n"));
    expect(delivered).toEqual(["new", ["No key.", 7], "complete No key.", "new", "complete "]);
  });

  test("deltas that arrive before the placeholder are delivered again after it", async () => {
    const store = heldStore();
    const { delivered, receive } = testStreams(store.read);
    receive(delta("b", 2), placeholder(), delta("c", 3));
    await store.answer("abc");
    receive(delta("d", 4), complete("abcd"));
    expect(delivered).toEqual([["b", 2], "new", ["abc", 3], ["d", 4], "complete abcd"]);
  });

  test("deltas that do not arrive are read from the store while other nodes cannot be reached", async () => {
    const store = heldStore();
    const { delivered, receive, readStored } = testStreams(store.read);
    receive(placeholder(), delta("a", 1));
    // The stream has just received something.
    readStored();
    expect(store.asked).toEqual([]);
    readStored();
    await store.answer("abc");
    readStored();
    await store.answer("abc");
    receive(delta("d", 4), complete("abcd"));
    expect(delivered).toEqual(["new", ["a", 1], ["bc", 3], ["d", 4], "complete abcd"]);
  });

  test("an end that was replayed after the message was deleted is delivered", () => {
    const { delivered, receive } = testStreams();
    const deletion = {
      ...complete("ab"),
      data: JSON.stringify({ method: "events.messageDeleted", params: { ids: ["m"] } }),
    };
    receive(placeholder(), delta("a", 1), deletion, delta("b", 2));
    expect(delivered).toEqual(["new", ["a", 1], "complete undefined"]);
  });

  test("a replayed placeholder shows the text so far, which is not delivered again", () => {
    const { delivered, receive } = testStreams();
    const replayed = {
      ...placeholder(),
      data: JSON.stringify({ method: "events.messageNew", params: { id: "m", content: "Grü" } }),
    };
    receive(replayed, delta("ße", 7), complete("Grüße!"));
    expect(delivered).toEqual(["new", ["ße", 7], ["!", 8], "complete Grüße!"]);
  });

  test("repeated deltas are delivered once", () => {
    const { delivered, receive } = testStreams();
    receive(placeholder(), delta("a", 1), delta("a", 1), delta("b", 2), delta("a", 1));
    expect(delivered).toEqual(["new", ["a", 1], ["b", 2]]);
  });

  test("deltas after a gap are delivered at the end where there is no store to read", () => {
    const { delivered, receive } = testStreams();
    receive(placeholder(), delta("a", 1), delta("c", 3), delta("d", 4), complete("abcd"));
    expect(delivered).toEqual(["new", ["a", 1], ["bcd", 4], "complete abcd"]);
  });

  test("missing deltas are read from the store, with those that arrive meanwhile", async () => {
    const store = heldStore();
    const { delivered, receive } = testStreams(store.read);
    receive(placeholder(), delta("a", 1), delta("c", 3), delta("d", 4));
    expect(store.asked).toHaveLength(1);
    await store.answer("abc");
    await store.answer("abcd");
    receive(delta("e", 5), complete("abcde"));
    expect(delivered).toEqual(["new", ["a", 1], ["bc", 3], ["d", 4], ["e", 5], "complete abcde"]);
    expect(store.asked).toHaveLength(0);
  });

  test("text read after the end is not delivered", async () => {
    const store = heldStore();
    const { delivered, receive } = testStreams(store.read);
    receive(placeholder(), delta("b", 2), complete("ab"));
    await store.answer("ab");
    expect(delivered).toEqual(["new", ["ab", 2], "complete ab"]);
  });

  test("missing deltas are read again with the next delta after a failed read", async () => {
    const store = heldStore();
    const { delivered, receive } = testStreams(store.read);
    receive(placeholder(), delta("b", 2));
    await store.answer(null);
    receive(delta("c", 3));
    await store.answer("abc");
    expect(delivered).toEqual(["new", ["abc", 3]]);
  });

  test("deltas of a stream that began earlier are delivered from the first received on", () => {
    const { delivered, receive, forget } = testStreams();
    receive(delta("b", 2), delta("c", 3), complete("abc"));
    receive(placeholder("n"), delta("a", 1, "n"));
    forget(CHAT);
    receive(delta("c", 3, "n"), complete("abc", "n"));
    expect(delivered).toEqual([
      ["b", 2],
      ["c", 3],
      "complete abc",
      "new",
      ["a", 1],
      ["c", 3],
      "complete abc",
    ]);
  });

  test("deltas of one message do not affect those of another", () => {
    const { delivered, receive } = testStreams();
    receive(placeholder("m"), placeholder("n"), delta("a", 1, "m"), delta("x", 1, "n"));
    receive(complete("ab", "m"), complete("xy", "n"));
    expect(delivered).toEqual([
      ...["new", "new", ["a", 1], ["x", 1]],
      ...[["b", 2], "complete ab", ["y", 2], "complete xy"],
    ]);
  });
});
