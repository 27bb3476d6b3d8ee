import { describe, expect, test } from "bun:test";
import { isStale, type State } from "../src/model/state.ts";
import {
  aChat,
  aMessage,
  anEvent,
  ann,
  annsState,
  bob,
  CHAT,
  chatOf,
  claude,
  run,
} from "./support/records.ts";

const unread = (state: State) => chatOf(state).chat.unread;

describe("unread counts", () => {
  const three = [
    anEvent("events.messageNew", aMessage({ seq: 1, mentions: ["ann"] }), 1),
    anEvent("events.messageNew", aMessage({ seq: 2, sender: claude }), 2),
    anEvent("events.messageNew", aMessage({ seq: 3 }), 3),
  ];
  const partly = anEvent("events.chatRead", {
    conversation_id: CHAT,
    reader: ann,
    last_read_seq: 1,
  });

  test("are kept by kind of sender, and for mentions", () => {
    const state = run(annsState(), ...three);
    expect(unread(state)).toEqual({ human: 2, agent: 1, mentions: 1 });
    expect(state.unread).toEqual({ human: 2, agent: 1, mentions: 1 });
  });

  test("are zero after the caller sends a message or reads the latest", () => {
    const mine = aMessage({ seq: 4, sender: ann });
    const wrote = run(annsState(), ...three, anEvent("events.messageNew", mine, 4));
    expect(unread(wrote)).toEqual({ human: 0, agent: 0, mentions: 0 });
    const read = run(annsState(), ...three, { type: "read", chatId: CHAT, seq: 3 });
    expect(unread(read)).toEqual({ human: 0, agent: 0, mentions: 0 });
    expect(chatOf(read).chat.last_read_seq).toBe(3);
  });

  test("leave out imported messages, whatever happens to them", () => {
    const imported = true as const;
    const past = aMessage({ seq: 4, mentions: ["ann"], imported });
    const own = aMessage({ seq: 5, sender: ann, imported });
    const state = run(
      annsState(),
      ...three,
      anEvent("events.messageNew", past, 4),
      anEvent("events.messageNew", own, 5),
    );
    expect(unread(state)).toEqual({ human: 2, agent: 1, mentions: 1 });
    const { last_read_seq, last_message, seq } = chatOf(state).chat;
    expect({ last_read_seq, last: last_message?.id, seq }).toEqual({
      last_read_seq: 0,
      last: own.id,
      seq: 5,
    });
    const edited = aMessage({ seq: 4, version: 6, imported });
    const deleted = { conversation_id: CHAT, ids: [past.id] };
    const later = run(
      state,
      anEvent("events.messageEdited", edited, 6),
      anEvent("events.messageDeleted", deleted, 7),
    );
    expect(unread(later)).toEqual({ human: 2, agent: 1, mentions: 1 });
    expect(isStale(chatOf(later))).toBe(false);
  });

  test("decrease when messages are deleted", () => {
    const deleted = { conversation_id: CHAT, ids: ["m1", "m2"] };
    const state = run(annsState(), ...three, anEvent("events.messageDeleted", deleted, 4));
    expect(unread(state)).toEqual({ human: 1, agent: 0, mentions: 0 });
    expect(isStale(chatOf(state))).toBe(false);
  });

  test("follow mentions that an edit adds or removes", () => {
    const without = anEvent("events.messageEdited", aMessage({ seq: 1, version: 4 }), 4);
    expect(unread(run(annsState(), ...three, without)).mentions).toBe(0);
    const edited = aMessage({ seq: 3, version: 4, mentions: ["ann"] });
    const withOne = anEvent("events.messageEdited", edited, 4);
    expect(unread(run(annsState(), ...three, withOne)).mentions).toBe(2);
  });

  test("are stale when events alone do not determine them", () => {
    expect(isStale(chatOf(run(annsState(), ...three, partly)))).toBe(true);
    const unknown = { conversation_id: CHAT, ids: ["never seen"] };
    const deleted = anEvent("events.messageDeleted", unknown, 4);
    expect(isStale(chatOf(run(annsState(), ...three, deleted)))).toBe(true);
  });

  test("stay stale if a message arrives before the snapshot that was to determine them", () => {
    const fetched = aChat({ seq: 3, last_read_seq: 1, last_message: aMessage({ seq: 3 }) });
    const state = run(
      annsState(),
      ...three,
      partly,
      anEvent("events.messageNew", aMessage({ seq: 4 }), 4),
      { type: "snapshots", snapshots: [fetched], validates: 1 },
    );
    expect(isStale(chatOf(state))).toBe(true);
  });

  test("are not restored by a snapshot from before the read", () => {
    const old = aChat({
      seq: 3,
      last_message: aMessage({ seq: 3 }),
      unread_count: 3,
      unread: { human: 2, agent: 1, mentions: 1 },
    });
    const state = run(
      annsState(),
      ...three,
      { type: "read", chatId: CHAT, seq: 3 },
      { type: "snapshots", snapshots: [old] },
    );
    expect(unread(state)).toEqual({ human: 0, agent: 0, mentions: 0 });
  });

  test("are stale after a late snapshot from before a read that the server has not confirmed", () => {
    const old = aChat({
      seq: 4,
      last_message: aMessage({ seq: 4 }),
      unread_count: 4,
      unread: { human: 3, agent: 1, mentions: 1 },
    });
    const read = { conversation_id: CHAT, reader: ann, last_read_seq: 3 };
    const state = run(
      annsState(),
      ...three,
      { type: "read", chatId: CHAT, seq: 3 },
      anEvent("events.chatRead", read),
      { type: "snapshots", snapshots: [old] },
      { type: "readSettled", chatId: CHAT, seq: 3 },
    );
    expect(isStale(chatOf(state))).toBe(true);
  });
});

describe("read positions", () => {
  test("of a person who has left are not shown, even if the event is late", () => {
    const shared = aChat({ participants: [ann], seq: 1, participant_count: 1 });
    const left = anEvent("events.conversationUpdated", { ...shared, changes: [] }, 1);
    const params = { conversation_id: CHAT, reader: bob, last_read_seq: 1 };
    const late = anEvent("events.chatRead", params);
    expect(chatOf(run(annsState(), late)).chat.reads).toEqual({ bob: 1 });
    expect(chatOf(run(annsState(), left, late)).chat.reads).toEqual({});
  });
});
