import { describe, expect, test } from "bun:test";
import type { EventFrame } from "@parley/protocol";
import type { Action } from "../src/model/actions.ts";
import type { State } from "../src/model/state.ts";
import {
  aChange,
  aChat,
  aMessage,
  anEvent,
  annsState,
  CHAT,
  chatOf,
  ids,
  run,
} from "./support/records.ts";

const STATE = { notify: "all", muted_until: null, pinned: false, archived: false } as const;

/** An event for the caller's own clients. */
const own = (action: ReturnType<typeof anEvent>, own_seq: number): Action => ({
  type: "event",
  frame: { ...action.frame, own_seq } as EventFrame,
});
const told = (own_seq: number, last_read_seq: number, state = {}) =>
  own(
    anEvent("events.chatStateUpdated", {
      conversation_id: CHAT,
      state: { ...STATE, ...state },
      last_read_seq,
    }),
    own_seq,
  );
const cleared = (own_seq: number, cleared_seq: number, erased = false) =>
  own(anEvent("events.chatCleared", { conversation_id: CHAT, cleared_seq, erased }), own_seq);
const shown = (state: State) => state.order.includes(CHAT);

describe("the caller's own view", () => {
  test("is that with the highest own_seq", () => {
    const state = run(annsState(3), told(2, 3, { archived: true }), told(1, 3, { pinned: true }));
    expect(chatOf(state).chat.state).toEqual({ ...STATE, archived: true });
  });

  test("of an older reply is ignored, and of a newer one is taken", () => {
    const before = run(annsState(3), told(2, 1, { archived: true }));
    const reply = (own_seq: number) =>
      aChat({ seq: 3, own_seq, last_read_seq: 3, state: STATE, cleared_seq: 0 });
    const older = run(before, { type: "snapshots", snapshots: [reply(1)] });
    expect(chatOf(older).chat).toMatchObject({ state: { archived: true }, last_read_seq: 1 });
    const newer = run(before, { type: "snapshots", snapshots: [reply(3)] });
    expect(chatOf(newer).chat).toMatchObject({ state: STATE, last_read_seq: 3 });
  });

  test("has a lower read position after markUnread, until the server has told how many are unread", () => {
    const state = run(annsState(3), told(1, 1));
    const { chat, invalidations: validates, moves } = chatOf(state);
    expect([chat.last_read_seq, validates]).toEqual([1, 1]);
    const snapshot = aChat({
      seq: 3,
      own_seq: 1,
      last_read_seq: 1,
      unread_count: 2,
      unread: { human: 2, agent: 0, mentions: 0 },
    });
    const next = run(state, { type: "snapshots", snapshots: [snapshot], validates, moves });
    expect(chatOf(next)).toMatchObject({
      chat: { unread_count: 2, last_read_seq: 1 },
      validated: 1,
    });
  });

  test("keeps what was read while a lower position was on its way", () => {
    const before = annsState(3);
    const { invalidations: validates, moves } = chatOf(before);
    const reader = { username: "ann", kind: "human", display_name: "Ann", version: 0 } as const;
    const read = anEvent("events.chatRead", { conversation_id: CHAT, reader, last_read_seq: 3 });
    const snapshots = [aChat({ seq: 3, last_read_seq: 1 })];
    const next = run(before, read, { type: "snapshots", snapshots, validates, moves });
    expect(chatOf(next).chat.last_read_seq).toBe(3);
  });
});

describe("a conversation that was cleared", () => {
  test("is empty, read, and on no list", () => {
    const state = run(annsState(3), cleared(1, 3));
    expect(ids(state)).toEqual([]);
    expect(shown(state)).toBe(false);
    const { chat } = chatOf(state);
    expect(chat).toMatchObject({ cleared_seq: 3, last_message: null, unread_count: 0 });
  });

  test("comes back with a message, and with a change of the group, and with nothing else", () => {
    const before = run(annsState(3), cleared(1, 3));
    const edited = anEvent("events.messageEdited", aMessage({ seq: 2, version: 4 }), 4);
    expect(shown(run(before, edited))).toBe(false);
    const message = run(before, anEvent("events.messageNew", aMessage({ seq: 4 }), 4));
    expect([shown(message), ids(message)]).toEqual([true, ["m4"]]);
    const update = { ...aChat({ seq: 4 }), changes: [aChange(4)] };
    expect(shown(run(before, anEvent("events.conversationUpdated", update, 4)))).toBe(true);
  });

  test("gets nothing back from replies that come late", () => {
    const before = run(annsState(3), cleared(1, 3));
    const items = [aMessage({ seq: 1 }), aMessage({ seq: 2 })];
    const page = { items, has_more: true, changes: [aChange(3)] };
    const state = run(
      before,
      { type: "unloaded", chatId: CHAT },
      { type: "messagePage", chatId: CHAT, page, since: 3 },
      { type: "snapshots", snapshots: [aChat({ seq: 3, last_message: aMessage({ seq: 3 }) })] },
    );
    expect(ids(state)).toEqual([]);
    expect(chatOf(state).window).toMatchObject({ floor: null, changes: [] });
    expect(chatOf(state).chat.cleared_seq).toBe(3);
  });

  test("is gone when it was erased, whatever comes later", () => {
    const state = run(annsState(3), cleared(1, 3, true));
    expect(state.chats[CHAT]).toBeUndefined();
    expect(run(state, { type: "snapshots", snapshots: [aChat({ seq: 9 })] }).chats).toEqual({});
  });
});
