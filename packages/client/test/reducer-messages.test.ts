import { describe, expect, test } from "bun:test";
import { initialState, isBehind } from "../src/model/state.ts";
import {
  aChat,
  aMessage,
  anEvent,
  ann,
  annsState,
  bob,
  CHAT,
  chatOf,
  ids,
  items,
  run,
  updates,
} from "./support/records.ts";

describe("counted events", () => {
  test("advance the conversation and its messages when they arrive in order", () => {
    const state = run(annsState(2), anEvent("events.messageNew", aMessage({ seq: 3 }), 3));
    expect(ids(state)).toEqual(["m1", "m2", "m3"]);
    expect(chatOf(state).chat).toMatchObject({ seq: 3, unread_count: 1 });
    expect(isBehind(chatOf(state))).toBe(false);
  });

  test("that were applied before change nothing", () => {
    const state = annsState(2);
    const again = run(state, anEvent("events.messageNew", aMessage({ seq: 2 }), 2));
    expect(chatOf(again).chat).toBe(chatOf(state).chat);
    expect(items(again)).toBe(items(state));
  });

  test("after a gap are not applied, and the conversation is behind", () => {
    const state = run(annsState(2), anEvent("events.messageNew", aMessage({ seq: 4 }), 4));
    expect(ids(state)).toEqual(["m1", "m2"]);
    expect(isBehind(chatOf(state))).toBe(true);
    const caughtUp = run(state, updates(4, [aMessage({ seq: 3 }), aMessage({ seq: 4 })]));
    expect(ids(caughtUp)).toEqual(["m1", "m2", "m3", "m4"]);
    expect(isBehind(chatOf(caughtUp))).toBe(false);
  });

  test("after a gap leave a conversation that is not open as it was, and behind", () => {
    const before = run(annsState(2), { type: "unloaded", chatId: CHAT });
    const state = run(before, anEvent("events.messageNew", aMessage({ seq: 4 }), 4));
    expect(chatOf(state).chat).toBe(chatOf(before).chat);
    expect(isBehind(chatOf(state))).toBe(true);
  });

  test("do not include conversationNew: a higher counter means that changes are missing", () => {
    const { unread: _, unread_count: __, ...shared } = aChat({ seq: 3 });
    const state = run(annsState(2), anEvent("events.conversationNew", shared, 3));
    expect(chatOf(state).chat.seq).toBe(2);
    expect(isBehind(chatOf(state))).toBe(true);
  });

  test("of an unknown conversation make a later, older snapshot behind", () => {
    const state = run(
      initialState("online"),
      { type: "me", me: ann },
      anEvent(
        "events.reactionAdded",
        { message_id: "m1", reactor: bob, emoji: "👍", created_at: "" },
        5,
      ),
      { type: "snapshots", snapshots: [aChat({ seq: 4 })] },
    );
    expect(isBehind(chatOf(state))).toBe(true);
  });

  test("that a fetched page includes are not applied twice", () => {
    const reacted = aMessage({
      seq: 2,
      version: 3,
      reactions: [{ emoji: "👍", count: 1, reacted: false }],
    });
    const reaction = { message_id: "m2", reactor: bob, emoji: "👍", created_at: "" };
    const state = run(
      initialState("online"),
      { type: "me", me: ann },
      { type: "snapshots", snapshots: [aChat({ seq: 2 })] },
      // The page includes the reaction, whose event has not arrived yet.
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 1 }), reacted], has_more: false },
        since: 2,
      },
      anEvent("events.reactionAdded", reaction, 3),
    );
    expect(items(state)[1]?.reactions).toEqual([{ emoji: "👍", count: 1, reacted: false }]);
  });
});

describe("messages", () => {
  test("that were deleted do not come back with a late reply", () => {
    const deleted = anEvent("events.messageDeleted", { conversation_id: CHAT, ids: ["m1"] }, 3);
    const state = run(annsState(2), deleted, updates(3, [aMessage({ seq: 1 })]));
    expect(ids(state)).toEqual(["m2"]);
  });

  test("older than the loaded ones are not added", () => {
    const state = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 9 })] },
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 8 }), aMessage({ seq: 9 })], has_more: true },
        since: 9,
      },
      updates(10, [aMessage({ seq: 3, version: 10 })]),
    );
    expect(ids(state)).toEqual(["m8", "m9"]);
  });

  test("deleted at the edge of the window leave the edge in place", () => {
    const loaded = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 9 })] },
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 9 })], has_more: true },
        since: 9,
      },
      anEvent("events.messageDeleted", { conversation_id: CHAT, ids: ["m9"] }, 10),
    );
    expect(chatOf(loaded).window).toMatchObject({ items: [], floor: { id: "m9", seq: 9 } });
    const older = run(loaded, {
      type: "messagePage",
      chatId: CHAT,
      page: { items: [aMessage({ seq: 8 })], has_more: false },
      since: 10,
      before: "m9",
    });
    expect(ids(older)).toEqual(["m8"]);
    expect(chatOf(older).window?.floor).toBeNull();
  });

  test("loaded while others changed make the window behind", () => {
    const state = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 2 })] },
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 2 })], has_more: true },
        since: 2,
      },
      anEvent("events.messageEdited", aMessage({ seq: 1, version: 3 }), 3),
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 1 })], has_more: false },
        since: 2,
        before: "m2",
      },
    );
    expect(isBehind(chatOf(state))).toBe(true);
  });

  test("of an older page stay behind after updates that start later", () => {
    const state = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 3 })] },
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 2 })], has_more: true },
        since: 3,
      },
      // Requested at counter 2, before the first message was edited.
      {
        type: "messagePage",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 1 })], has_more: false },
        since: 2,
        before: "m2",
      },
      { ...updates(4, [aMessage({ seq: 4 })]), since: 3 },
    );
    expect(ids(state)).toEqual(["m1", "m2", "m4"]);
    expect(isBehind(chatOf(state))).toBe(true);
  });

  test("keep the caller's own reactions when an edit event arrives", () => {
    const reaction = { message_id: "m1", reactor: ann, emoji: "👍", created_at: "" };
    const edited = aMessage({
      version: 3,
      content: "edited",
      reactions: [{ emoji: "👍", count: 1, reacted: false }],
    });
    const state = run(
      annsState(1),
      anEvent("events.reactionAdded", reaction, 2),
      anEvent("events.messageEdited", edited, 3),
    );
    expect(items(state)[0]).toMatchObject({
      content: "edited",
      reactions: [{ emoji: "👍", count: 1, reacted: true }],
    });
  });
});

describe("removal from a conversation", () => {
  const removed = anEvent(
    "events.conversationUpdated",
    { ...aChat({ seq: 3, participants: [bob], participant_count: 1 }), changes: [] },
    3,
  );

  test("removes the conversation, and a late reply does not bring it back", () => {
    const state = run(annsState(2), removed);
    expect(state.chats).toEqual({});
    expect(state.order).toEqual([]);
    const late = run(state, { type: "snapshots", snapshots: [aChat({ seq: 2 })] });
    expect(late.chats).toEqual({});
    const back = run(state, { type: "snapshots", snapshots: [aChat({ seq: 4 })] });
    expect(back.order).toEqual([CHAT]);
  });
});

test("a snapshot without news keeps every object", () => {
  const state = annsState(3);
  const snapshot = aChat({ seq: 3, last_read_seq: 3, last_message: aMessage({ seq: 3 }) });
  const again = run(state, { type: "snapshots", snapshots: [snapshot] });
  expect(chatOf(again).chat).toBe(chatOf(state).chat);
  expect(items(again)).toBe(items(state));
  expect(again.order).toBe(state.order);
  expect(again.unread).toBe(state.unread);
});

describe("an imported message", () => {
  const past = (seq: number, created_at: string) =>
    anEvent("events.messageNew", aMessage({ seq, created_at, imported: true }), seq);
  const updatedAt = (...actions: ReturnType<typeof past>[]) =>
    chatOf(run(annsState(), ...actions)).chat.updated_at;

  test("places a conversation in which nothing has happened, and never moves one down", () => {
    const [earlier, later] = ["2024-05-01T09:00:00.000Z", "2024-05-01T10:00:00.000Z"];
    expect(updatedAt(past(1, earlier), past(2, later))).toBe(later);
    expect(updatedAt(past(1, later), past(2, earlier))).toBe(later);
    const sent = aMessage({ seq: 1 });
    const live = anEvent("events.messageNew", sent, 1);
    expect(updatedAt(live, past(2, earlier))).toBe(sent.created_at);
    expect(updatedAt(past(1, earlier), anEvent("events.messageNew", aMessage({ seq: 2 }), 2))).toBe(
      sent.created_at,
    );
  });
});
