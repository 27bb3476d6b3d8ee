import { describe, expect, test } from "bun:test";
import type { ConversationChange } from "@parley/protocol";
import { initialState, isBehind, isStale, type State } from "../src/model/state.ts";
import { createUnsentMessage } from "../src/send/unsent-message.ts";
import type { LocalMessage } from "../src/types.ts";
import {
  aChange,
  aChat,
  aMessage,
  anEvent,
  ann,
  annsState,
  bob,
  CHAT,
  claude,
  run,
} from "./support/records.ts";

const chatOf = (state: State) => {
  const chat = state.chats[CHAT];
  if (!chat) throw new Error("the conversation is not there");
  return chat;
};
const items = (state: State): readonly LocalMessage[] => chatOf(state).window?.items ?? [];
const ids = (state: State) => items(state).map(({ id }) => id);
const unread = (state: State) => chatOf(state).chat.unread;

/** A page of what changed, as the server tells it. */
const updates = (seq: number, messages = [aMessage()], deleted_ids: string[] = []) => ({
  type: "updates" as const,
  chatId: CHAT,
  since: 0,
  page: {
    messages,
    deleted_ids,
    changes: [] as ConversationChange[],
    conversation: aChat({ seq, last_message: messages.at(-1) ?? null }),
    seq,
    has_more: false,
    reads: {},
  },
});

describe("counted events", () => {
  test("in order move the conversation and its messages on", () => {
    const state = run(annsState(2), anEvent("events.messageNew", aMessage({ seq: 3 }), 3));
    expect(ids(state)).toEqual(["m1", "m2", "m3"]);
    expect(chatOf(state).chat).toMatchObject({ seq: 3, unread_count: 1 });
    expect(isBehind(chatOf(state))).toBe(false);
  });

  test("that came before change nothing", () => {
    const state = annsState(2);
    const again = run(state, anEvent("events.messageNew", aMessage({ seq: 2 }), 2));
    expect(chatOf(again).chat).toBe(chatOf(state).chat);
    expect(items(again)).toBe(items(state));
  });

  test("after a jump are not applied, and what is missing is asked for", () => {
    const state = run(annsState(2), anEvent("events.messageNew", aMessage({ seq: 4 }), 4));
    expect(ids(state)).toEqual(["m1", "m2"]);
    expect(isBehind(chatOf(state))).toBe(true);
    const healed = run(state, updates(4, [aMessage({ seq: 3 }), aMessage({ seq: 4 })]));
    expect(ids(healed)).toEqual(["m1", "m2", "m3", "m4"]);
    expect(isBehind(chatOf(healed))).toBe(false);
  });

  test("do not include a new conversation, whose counter stands: what is missing is asked for", () => {
    const { unread: _, unread_count: __, ...shared } = aChat({ seq: 3 });
    const state = run(annsState(2), anEvent("events.conversationNew", shared, 3));
    expect(chatOf(state).chat.seq).toBe(2);
    expect(isBehind(chatOf(state))).toBe(true);
  });

  test("of a conversation not known yet count once it is", () => {
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

  test("tell of a page that was on its way nothing new", () => {
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
      // The page was read after the reaction, whose event is still to come.
      {
        type: "history",
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
  test("that are gone do not come back with an answer that was on its way", () => {
    const deleted = anEvent("events.messageDeleted", { conversation_id: CHAT, ids: ["m1"] }, 3);
    const state = run(annsState(2), deleted, updates(3, [aMessage({ seq: 1 })]));
    expect(ids(state)).toEqual(["m2"]);
  });

  test("older than those loaded do not open a gap", () => {
    const state = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 9 })] },
      {
        type: "history",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 8 }), aMessage({ seq: 9 })], has_more: true },
        since: 9,
      },
      updates(10, [aMessage({ seq: 3, version: 10 })]),
    );
    expect(ids(state)).toEqual(["m8", "m9"]);
  });

  test("deleted at the edge leave the edge where it was", () => {
    const loaded = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 9 })] },
      {
        type: "history",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 9 })], has_more: true },
        since: 9,
      },
      anEvent("events.messageDeleted", { conversation_id: CHAT, ids: ["m9"] }, 10),
    );
    expect(chatOf(loaded).window).toMatchObject({ items: [], floor: { id: "m9", seq: 9 } });
    const older = run(loaded, {
      type: "history",
      chatId: CHAT,
      page: { items: [aMessage({ seq: 8 })], has_more: false },
      since: 10,
      before: "m9",
    });
    expect(ids(older)).toEqual(["m8"]);
    expect(chatOf(older).window?.floor).toBeNull();
  });

  test("loaded while others changed are asked for again since then", () => {
    const state = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 2 })] },
      {
        type: "history",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 2 })], has_more: true },
        since: 2,
      },
      anEvent("events.messageEdited", aMessage({ seq: 1, version: 3 }), 3),
      {
        type: "history",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 1 })], has_more: false },
        since: 2,
        before: "m2",
      },
    );
    expect(isBehind(chatOf(state))).toBe(true);
  });

  test("loaded meanwhile are not up to date because of an answer that begins later", () => {
    const state = run(
      initialState("online"),
      { type: "snapshots", snapshots: [aChat({ seq: 3 })] },
      {
        type: "history",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 2 })], has_more: true },
        since: 3,
      },
      // Asked for before the counter was 3, when the first message had not been edited yet.
      {
        type: "history",
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

  test("edited keep the caller's own reactions, which broadcasts do not know", () => {
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

describe("unread figures", () => {
  const three = [
    anEvent("events.messageNew", aMessage({ seq: 1, mentions: ["ann"] }), 1),
    anEvent("events.messageNew", aMessage({ seq: 2, sender: claude }), 2),
    anEvent("events.messageNew", aMessage({ seq: 3 }), 3),
  ];

  test("are counted by kind of sender, mentions apart", () => {
    const state = run(annsState(), ...three);
    expect(unread(state)).toEqual({ human: 2, agent: 1, mentions: 1 });
    expect(state.unread).toEqual({ human: 2, agent: 1, mentions: 1 });
  });

  test("end with a message of one's own, or with reading the latest", () => {
    const mine = aMessage({ seq: 4, sender: ann });
    const wrote = run(annsState(), ...three, anEvent("events.messageNew", mine, 4));
    expect(unread(wrote)).toEqual({ human: 0, agent: 0, mentions: 0 });
    const read = run(annsState(), ...three, { type: "read", chatId: CHAT, seq: 3 });
    expect(unread(read)).toEqual({ human: 0, agent: 0, mentions: 0 });
    expect(chatOf(read).chat.last_read_seq).toBe(3);
  });

  test("go down with what is deleted", () => {
    const deleted = { conversation_id: CHAT, ids: ["m1", "m2"] };
    const state = run(annsState(), ...three, anEvent("events.messageDeleted", deleted, 4));
    expect(unread(state)).toEqual({ human: 1, agent: 0, mentions: 0 });
    expect(isStale(chatOf(state))).toBe(false);
  });

  test("follow mentions that an edit brings or takes", () => {
    const without = anEvent("events.messageEdited", aMessage({ seq: 1, version: 4 }), 4);
    expect(unread(run(annsState(), ...three, without)).mentions).toBe(0);
    const edited = aMessage({ seq: 3, version: 4, mentions: ["ann"] });
    const withOne = anEvent("events.messageEdited", edited, 4);
    expect(unread(run(annsState(), ...three, withOne)).mentions).toBe(2);
  });

  test("are asked for when events alone do not tell", () => {
    const partly = anEvent("events.chatRead", {
      conversation_id: CHAT,
      reader: ann,
      last_read_seq: 1,
    });
    expect(isStale(chatOf(run(annsState(), ...three, partly)))).toBe(true);
    const unknown = { conversation_id: CHAT, ids: ["never seen"] };
    const deleted = anEvent("events.messageDeleted", unknown, 4);
    expect(isStale(chatOf(run(annsState(), ...three, deleted)))).toBe(true);
  });

  test("of a snapshot that does not know what was read here stay read", () => {
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
});

describe("the place up to which one has read", () => {
  test("of somebody who has left is not shown, even if it is told late", () => {
    const shared = aChat({ participants: [ann], seq: 1, participant_count: 1 });
    const left = anEvent("events.conversationUpdated", { ...shared, changes: [] }, 1);
    const params = { conversation_id: CHAT, reader: bob, last_read_seq: 1 };
    const late = anEvent("events.chatRead", params);
    expect(chatOf(run(annsState(), late)).chat.reads).toEqual({ bob: 1 });
    expect(chatOf(run(annsState(), left, late)).chat.reads).toEqual({});
  });
});

describe("streams", () => {
  const placeholder = aMessage({ seq: 1, sender: claude, content: "", finalized_at: null });
  const begun = run(annsState(), anEvent("events.messageNew", placeholder, 1));
  const delta = (text: string, offset: number) =>
    anEvent("events.messageDelta", { id: "m1", delta: text, offset });

  test("of messages that are not known are ignored", () => {
    const unknown = anEvent("events.messageDelta", { id: "m7", delta: "hi", offset: 2 });
    const state = run(begun, unknown);
    expect(items(state)).toBe(items(begun));
    expect(state.earlyDeltas).toEqual({});
  });

  test("hold back what came too early until the rest is fetched", () => {
    const gap = run(begun, delta("one ", 4), delta("three", 13));
    expect(items(gap)[0]?.content).toBe("one ");
    expect(Object.keys(gap.earlyDeltas)).toEqual(["m1"]);
    const fetched = run(gap, { type: "message", message: { ...placeholder, content: "one two " } });
    expect(items(fetched)[0]?.content).toBe("one two three");
    expect(fetched.earlyDeltas).toEqual({});
    expect(chatOf(fetched).chat.last_message?.content).toBe("one two three");
  });

  test("do not get shorter by an answer that was on its way", () => {
    const state = run(begun, delta("one ", 4), {
      type: "message",
      message: { ...placeholder, content: "o" },
    });
    expect(items(state)[0]?.content).toBe("one ");
  });

  test("end with the whole message, and nothing is appended after", () => {
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

  test("keep the agent typing until the message is whole", () => {
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

  test("is left by a message when its event comes, whatever the answer does", () => {
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

  test("shows a message that was answered until its event comes", () => {
    const state = run(queued, {
      type: "sent",
      clientMsgId: "u1",
      message: { ...mine, delivery: "sent" },
    });
    expect(state.outbox[CHAT]?.map(({ id }) => id)).toEqual(["m2"]);
    expect(run(state, anEvent("events.messageNew", mine, 2)).outbox).toEqual({});
  });

  test("is not left because somebody else uses the same id", () => {
    const theirs = { ...mine, sender: bob };
    const state = run(queued, anEvent("events.messageNew", theirs, 2));
    expect(state.outbox[CHAT]).toHaveLength(1);
  });
});

describe("changes of the group", () => {
  const changes = (state: State) => chatOf(state).window?.changes.map(({ seq }) => seq);
  const updated = (seq: number) =>
    anEvent("events.conversationUpdated", { ...aChat({ seq }), changes: [aChange(seq)] }, seq);
  const page = (seq: number, ...places: number[]) => {
    const { page: found, ...rest } = updates(seq, []);
    return { ...rest, page: { ...found, changes: places.map((place) => aChange(place)) } };
  };

  test("come with events, with updates and with the history, each once and in order", () => {
    const heard = run(annsState(2), updated(3), updated(4));
    expect(changes(heard)).toEqual([3, 4]);
    expect(changes(run(heard, page(5, 3, 4, 5)))).toEqual([3, 4, 5]);
    expect(changes(run(annsState(2), page(4, 3, 4), updated(4)))).toEqual([3, 4]);
    const opened = run(
      initialState("online"),
      { type: "me", me: ann },
      { type: "snapshots", snapshots: [aChat({ seq: 5 })] },
      {
        type: "history",
        chatId: CHAT,
        page: { items: [aMessage({ seq: 4 })], has_more: true, changes: [aChange(5)] },
        since: 5,
      },
      {
        type: "history",
        chatId: CHAT,
        page: {
          items: [aMessage({ seq: 1 })],
          has_more: false,
          changes: [2, 3].map((n) => aChange(n)),
        },
        since: 5,
        before: "m4",
      },
    );
    expect(changes(opened)).toEqual([2, 3, 5]);
  });

  test("from further back join those of the window", () => {
    const aside = (items: number[], places: number[], has_more: boolean) => ({
      items: items.map((seq) => aMessage({ seq })),
      has_more,
      changes: places.map((place) => aChange(place)),
    });
    const state = run(
      initialState("online"),
      { type: "me", me: ann },
      { type: "snapshots", snapshots: [aChat({ seq: 9 })] },
      { type: "history", chatId: CHAT, page: aside([8], [9], true), since: 9 },
      { type: "aside", chatId: CHAT, page: aside([2, 4], [3, 5], true), since: 9 },
    );
    // What lies beyond the last message of the page comes with the next one.
    expect(chatOf(state).aside?.changes.map(({ seq }) => seq)).toEqual([3]);
    const joined = run(state, {
      type: "aside",
      chatId: CHAT,
      page: aside([6, 8], [5, 7, 9], false),
      since: 9,
      from: { id: "m4", direction: "newer" },
    });
    expect(chatOf(joined).aside).toBeNull();
    expect(changes(joined)).toEqual([3, 5, 7, 9]);
  });

  test("of a server that tells none are none", () => {
    const { changes: _, ...shared } = { ...aChat({ seq: 3 }), changes: [] };
    const old = anEvent("events.conversationUpdated", shared as never, 3);
    expect(changes(run(annsState(2), old))).toEqual([]);
  });

  test("name people by their latest names", () => {
    const robert = { ...bob, display_name: "Robert", version: 1 };
    const state = run(annsState(2), updated(3), anEvent("events.accountUpdated", robert));
    expect(chatOf(state).window?.changes[0]?.actor).toEqual(robert);
  });
});

describe("removal from a conversation", () => {
  const removed = anEvent(
    "events.conversationUpdated",
    { ...aChat({ seq: 3, participants: [bob], participant_count: 1 }), changes: [] },
    3,
  );

  test("makes it disappear, and an answer that was on its way does not bring it back", () => {
    const state = run(annsState(2), removed);
    expect(state.chats).toEqual({});
    expect(state.order).toEqual([]);
    const late = run(state, { type: "snapshots", snapshots: [aChat({ seq: 2 })] });
    expect(late.chats).toEqual({});
    const back = run(state, { type: "snapshots", snapshots: [aChat({ seq: 4 })] });
    expect(back.order).toEqual([CHAT]);
  });
});

test("a snapshot that says nothing new leaves everything the very same", () => {
  const state = annsState(3);
  const snapshot = aChat({ seq: 3, last_read_seq: 3, last_message: aMessage({ seq: 3 }) });
  const again = run(state, { type: "snapshots", snapshots: [snapshot] });
  expect(chatOf(again).chat).toBe(chatOf(state).chat);
  expect(items(again)).toBe(items(state));
  expect(again.order).toBe(state.order);
  expect(again.unread).toBe(state.unread);
});
