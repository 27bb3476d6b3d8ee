import { describe, expect, test } from "bun:test";
import { createUnsentMessage } from "../src/send/unsent-message.ts";
import {
  aMessage,
  anEvent,
  ann,
  annsState,
  bob,
  CHAT,
  chatOf,
  claude,
  ids,
  items,
  run,
} from "./support/records.ts";

describe("streams", () => {
  const placeholder = aMessage({ seq: 1, sender: claude, content: "", finalized_at: null });
  const begun = run(annsState(), anEvent("events.messageNew", placeholder, 1));
  const delta = (text: string, offset: number) =>
    anEvent("events.messageDelta", { id: "m1", delta: text, offset });

  test("of unknown messages are ignored", () => {
    const unknown = anEvent("events.messageDelta", { id: "m7", delta: "hi", offset: 2 });
    const state = run(begun, unknown);
    expect(items(state)).toBe(items(begun));
    expect(state.earlyDeltas).toEqual({});
  });

  test("keep early deltas until the gap is fetched", () => {
    const gap = run(begun, delta("one ", 4), delta("three", 13));
    expect(items(gap)[0]?.content).toBe("one ");
    expect(Object.keys(gap.earlyDeltas)).toEqual(["m1"]);
    const fetched = run(gap, { type: "message", message: { ...placeholder, content: "one two " } });
    expect(items(fetched)[0]?.content).toBe("one two three");
    expect(fetched.earlyDeltas).toEqual({});
    expect(chatOf(fetched).chat.last_message?.content).toBe("one two three");
  });

  test("of an excerpt go on once the whole message is fetched", () => {
    const excerpt = { ...placeholder, content: "one ", excerpt: true as const };
    const listed = run(annsState(), {
      type: "snapshots",
      snapshots: [{ ...chatOf(begun).chat, seq: 1, last_message: excerpt }],
    });
    const gap = run(listed, delta("three", 13));
    expect(chatOf(gap).chat.last_message?.content).toBe("one ");
    const message = { ...placeholder, content: "one two " };
    const { last_message } = chatOf(run(gap, { type: "message", message })).chat;
    expect(last_message?.content).toBe("one two three");
    expect(last_message).not.toHaveProperty("excerpt");
  });

  test("do not get shorter by a late reply", () => {
    const state = run(begun, delta("one ", 4), {
      type: "message",
      message: { ...placeholder, content: "o" },
    });
    expect(items(state)[0]?.content).toBe("one ");
  });

  test("end with the complete message, and later deltas are ignored", () => {
    const whole = aMessage({ seq: 1, version: 2, sender: claude, content: "one two" });
    const state = run(
      begun,
      delta("wo", 99),
      anEvent("events.messageComplete", whole, 2),
      delta("!", 8),
    );
    expect(items(state)[0]?.content).toBe("one two");
    expect(state.earlyDeltas).toEqual({});
  });

  test("keep the agent typing until the message is complete", () => {
    const typing = { conversation_id: CHAT, actor: claude, is_typing: true };
    const state = run(
      annsState(),
      anEvent("events.typing", typing),
      anEvent("events.messageNew", placeholder, 1),
    );
    expect(state.typing[CHAT]?.actors).toEqual([claude]);
    const whole = aMessage({ seq: 1, version: 2, sender: claude, content: "done" });
    const done = run(state, anEvent("events.messageComplete", whole, 2));
    expect(done.typing[CHAT]).toBeUndefined();
  });
});

describe("the outbox", () => {
  const entry = createUnsentMessage({
    id: "u1",
    chatId: CHAT,
    content: "hi",
    replyTo: undefined,
    sender: ann,
  });
  const queued = run(annsState(1), { type: "queued", message: entry });
  const mine = aMessage({ id: "m2", seq: 2, sender: ann, client_msg_id: "u1", content: "hi" });

  test("drops a message when its event arrives, before or after the reply", () => {
    const state = run(queued, anEvent("events.messageNew", mine, 2));
    expect(state.outbox).toEqual({});
    expect(ids(state)).toEqual(["m1", "m2"]);
    const answered = run(state, {
      type: "sent",
      clientMsgId: "u1",
      message: { ...mine, delivery: "sent" },
    });
    expect(answered.outbox).toEqual({});
  });

  test("keeps an accepted message until its event arrives", () => {
    const state = run(queued, {
      type: "sent",
      clientMsgId: "u1",
      message: { ...mine, delivery: "sent" },
    });
    expect(state.outbox[CHAT]?.map(({ id }) => id)).toEqual(["m2"]);
    expect(run(state, anEvent("events.messageNew", mine, 2)).outbox).toEqual({});
  });

  test("keeps a message when somebody else uses the same client_msg_id", () => {
    const theirs = { ...mine, sender: bob };
    const state = run(queued, anEvent("events.messageNew", theirs, 2));
    expect(state.outbox[CHAT]).toHaveLength(1);
  });
});
