import { describe, expect, test } from "bun:test";
import type { LocalMessage } from "@parley/client";
import type { ConversationChange } from "@parley/protocol";
import { byDay, DAYS, sinceDays } from "../src/agents/usage.ts";
import { describeChange, joinedAt } from "../src/chat/group-changes.ts";
import {
  earlierAnswers,
  outdatedAnswers,
  type Row,
  rowsOf as rowsOfWindow,
} from "../src/chat/timeline/rows.ts";
import { unsentMessage } from "../src/chat/unsent-message.ts";
import { dayLabel } from "../src/lib/time.ts";

const message = (seq: number, username: string, minute: number, rest = {}): LocalMessage => ({
  id: `id-${seq}`,
  conversation_id: "chat",
  seq,
  version: seq,
  sender: { username, kind: "human", display_name: username, version: 0 },
  content: "words",
  client_msg_id: null,
  reply_to_id: null,
  created_at: new Date(2026, 10, 15, 12, minute).toISOString(),
  edited_at: null,
  finalized_at: new Date(2026, 10, 15, 12, minute).toISOString(),
  reactions: [],
  mentions: [],
  turn: null,
  action: null,
  uses: [],
  tool_calls: [],
  files: [],
  delivery: "sent",
  ...rest,
});

const account = (username: string) => ({
  username,
  kind: username.includes(":") ? ("agent" as const) : ("human" as const),
  display_name: username,
  version: 0,
});

const change = (seq: number, rest: Partial<ConversationChange> = {}): ConversationChange => ({
  seq,
  at: new Date(2026, 10, 15, 12).toISOString(),
  actor: account("ada"),
  kind: "added",
  subjects: [account("bob")],
  subject_count: 1,
  title: null,
  always_on: null,
  ...rest,
});

const rowsOf = (
  items: LocalMessage[],
  me: string,
  readUpTo: number | null,
  previous: Row[] = [],
  changes: ConversationChange[] = [],
) => rowsOfWindow({ items, changes }, me, readUpTo, previous);

describe("rows", () => {
  test("what continues a message belongs to its run, however long that took", () => {
    const turn = { continues: "id-1" };
    const rows = rowsOf(
      [message(1, "ada:claude", 0), message(2, "ada:claude", 50, { turn })],
      "bob",
      null,
    );
    expect(rows.map(({ first }) => first)).toEqual([true, false]);
    const others = [
      message(1, "ada:claude", 0),
      message(2, "bob", 1),
      message(3, "ada:claude", 2, { turn }),
    ];
    expect(rowsOf(others, "bob", null).map(({ first }) => first)).toEqual([true, true, true]);
  });

  test("a turn stands below what its tools ask, and changes above it are shown once", () => {
    const agent = "ada:claude";
    const asks = (seq: number, form: string) =>
      message(seq, agent, 2, { content: `> Which seat?\n\n<form id="elicit-${form}">` });
    const items = [
      message(1, agent, 0, { turn: { status: "complete" } }),
      message(2, agent, 1, { turn: { status: "streaming" } }),
      message(4, "bob", 1),
      asks(6, "one"),
      asks(7, "two"),
      message(8, "bob", 3),
    ];
    const changes = [change(3), change(5)];
    const rows = rowsOf(items, "bob", null, [], changes);
    expect(rows.map(({ message: { seq } }) => seq)).toEqual([1, 4, 6, 7, 2, 8]);
    expect(rows.map((row) => row.changes.map(({ seq }) => seq))).toEqual([
      [],
      [3],
      [5],
      [],
      [],
      [],
    ]);
    expect(rowsOf(items, "bob", null, rows, changes).map(({ message: { seq } }) => seq)).toEqual([
      1, 4, 6, 7, 2, 8,
    ]);
  });

  test("messages of one sender within five minutes are a run", () => {
    const rows = rowsOf(
      [
        message(1, "ada", 0),
        message(2, "ada", 1),
        message(3, "bob", 2),
        message(4, "bob", 20),
        message(5, "bob", 21, { reply_to_id: "id-1" }),
      ],
      "ada",
      null,
    );
    expect(rows.map(({ first, last }) => [first, last])).toEqual([
      [true, false],
      [false, true],
      [true, true],
      [true, true],
      [true, true],
    ]);
  });

  test("a new day is shown above its first message", () => {
    const before = { created_at: new Date(2020, 0, 1, 12).toISOString() };
    const rows = rowsOf([message(1, "ada", 0, before), message(2, "ada", 0)], "ada", null);
    expect(rows.map(({ day }) => day)).toEqual([+new Date(2020, 0, 1), +new Date(2026, 10, 15)]);
    expect(rows.every(({ first }) => first)).toBe(true);
  });

  test("reused rows of yesterday are not labelled as today's", () => {
    const yesterday = [message(1, "ada", 0), message(2, "ada", 1)];
    const created_at = new Date(2026, 10, 16, 0, 1).toISOString();
    const previous = rowsOf(yesterday, "ada", null);
    const items = [...yesterday, message(3, "ada", 0, { created_at })];
    const now = new Date(created_at);
    const labels = rowsOf(items, "ada", null, previous).map(({ day }) => day && dayLabel(day, now));
    expect(labels).toEqual(["Yesterday", null, "Today"]);
  });

  test("rows of unchanged messages are reused", () => {
    const messages = [
      message(1, "ada", 0),
      message(2, "bob", 1),
      message(3, "bob", 2),
      message(4, "bob", 20),
    ];
    const previous = rowsOf(messages, "ada", 2);
    const changes: Record<string, LocalMessage[]> = {
      nothing: [...messages],
      "one more": [...messages, message(5, "bob", 21)],
      "one more by another": [...messages, message(5, "ada", 21)],
      "one fewer": messages.slice(0, -1),
      "one before": [message(0, "eve", 0), ...messages],
      "one in the middle": messages.with(2, message(3, "eve", 2)),
      "all gone": [],
    };
    for (const [name, next] of Object.entries(changes)) {
      expect([name, rowsOf(next, "ada", 2, previous)]).toEqual([name, rowsOf(next, "ada", 2)]);
    }
    expect(rowsOf([...messages, message(5, "bob", 21)], "ada", 2, previous)[0]).toBe(previous[0]);
  });

  test("the line stands above the first unread message of somebody else", () => {
    const messages = [message(1, "bob", 0), message(2, "ada", 1), message(3, "bob", 2)];
    const lines = (readUpTo: number | null) =>
      rowsOf(messages, "ada", readUpTo).map(({ isFirstUnread }) => isFirstUnread);
    expect(lines(null)).toEqual([false, false, false]);
    expect(lines(1)).toEqual([false, false, true]);
    expect(lines(0)).toEqual([true, false, false]);
    expect(lines(3)).toEqual([false, false, false]);
  });

  test("a message of one's own keeps its key when the server assigns its id", () => {
    const sent = message(7, "ada", 0, { client_msg_id: "local" });
    const sending = { ...sent, id: "local", seq: 0 };
    const keys = [sending, sent].map((one) => rowsOf([one], "ada", null)[0]?.key);
    expect(keys).toEqual(["local", "local"]);
  });
});

test("of unsent messages the list shows the last one that failed, or else the last one that waits", () => {
  const [sent, failed] = [message(1, "ada", 0), message(0, "ada", 1, { delivery: "failed" })];
  const [first, second] = [1, 2].map((at) => message(0, "ada", at, { delivery: "sending" }));
  if (!first || !second) throw new Error("two messages were made");
  expect(unsentMessage([sent])).toBeUndefined();
  expect(unsentMessage([sent, first, second])).toBe(second);
  expect(unsentMessage([sent, failed, second])).toBe(failed);
});

describe("usage", () => {
  const now = Date.parse("2026-11-15T09:00:00.000Z");
  const row = (day: string, tokens: number) => ({
    agent: "ada:claude",
    conversation_id: "chat",
    day,
    turns: 1,
    failures: 0,
    input_tokens: tokens,
    output_tokens: 1,
  });

  test("is summed by day, including days without usage", () => {
    const days = byDay([row("2026-11-15", 9), row("2026-11-15", 9), row("2025-01-01", 9)], now);
    expect(days.length).toBe(DAYS);
    expect(days.at(-1)).toEqual({ day: "2026-11-15", tokens: 20, turns: 2, failures: 0 });
    expect(days[0]).toMatchObject({ day: "2026-11-02", tokens: 0 });
    expect(sinceDays(DAYS, now)).toBe("2026-11-02T00:00:00.000Z");
  });
});

describe("changes of the group", () => {
  test("stand between the messages and begin a new run", () => {
    const items = [message(2, "ada", 0), message(4, "ada", 1), message(0, "ada", 2)];
    const changes = [change(1), change(3), change(5), change(6)];
    const rows = rowsOf(items, "ada", null, [], changes);
    expect(rows.map((row) => row.changes.map(({ seq }) => seq))).toEqual([[1], [3], [5, 6]]);
    expect(rows.map(({ first }) => first)).toEqual([true, true, true]);
    const [only] = rowsOf(items.slice(0, 1), "ada", null, [], changes);
    expect(only?.changesAfter.map(({ seq }) => seq)).toEqual([3, 5, 6]);
  });

  test("are described in a sentence", () => {
    const name = ({ username }: { username: string }, isFirst: boolean) =>
      username === "ada" ? (isFirst ? "You" : "you") : username;
    const words = (rest: Partial<ConversationChange>) => describeChange(change(1, rest), name);
    const [ada, bob, carol] = ["ada", "bob", "carol"].map(account);
    if (!ada || !bob || !carol) throw new Error("three accounts were made");
    expect(words({})).toBe("You added bob");
    expect(words({ actor: bob, subjects: [ada, carol], subject_count: 60 })).toBe(
      "bob added you, carol and 58 more",
    );
    expect(words({ kind: "removed", actor: bob, subjects: [ada] })).toBe("bob removed you");
    expect(words({ kind: "left", actor: bob, subjects: [bob, account("bob:gpt")] })).toBe(
      "bob and bob:gpt left",
    );
    expect(words({ kind: "renamed", title: "Tea" })).toBe("You named the group «Tea»");
    expect(words({ kind: "renamed", title: null })).toBe("You took the title away");
    expect(words({ kind: "admin_changed" })).toBe("bob is the admin now");
    expect(words({ kind: "admin_changed", subjects: [ada] })).toBe("You are the admin now");
    const agent = { kind: "mode_changed" as const, subjects: [account("ada:gpt")] };
    expect(words({ ...agent, always_on: true })).toBe("You set ada:gpt to answer every message");
    expect(words({ ...agent, always_on: false })).toBe("You set ada:gpt to answer when mentioned");
  });

  test("show when somebody was added last", () => {
    const changes = [change(1), change(4, { kind: "removed" }), change(7)];
    expect(joinedAt(changes, "bob")).toBe(7);
    expect(joinedAt(changes, "ada")).toBe(0);
  });
});

describe("answers", () => {
  const turn = (triggered_by: string) => ({
    turn: { status: "complete", triggered_by, model: "m", error: null, usage: null },
  });
  const edited = { edited_at: new Date(2026, 10, 15, 12, 5).toISOString() };

  test("to an edited question are outdated until the same agent answers again", () => {
    const question = message(1, "ada", 0, edited);
    const [first, other] = [message(2, "ada:gpt", 1, turn("id-1")), message(3, "bob", 2)];
    expect(outdatedAnswers([message(1, "ada", 0), first]).size).toBe(0);
    expect([...outdatedAnswers([question, first, other])]).toEqual(["id-2"]);
    const second = message(4, "ada:gpt", 6, turn("id-1"));
    expect(outdatedAnswers([question, first, other, second]).size).toBe(0);
    const anothers = message(5, "bob:gpt", 1, turn("id-1"));
    expect([...outdatedAnswers([question, first, second, anothers])]).toEqual(["id-5"]);
  });

  test("that continue after a decision are one answer with the message before", () => {
    const [waiting, goesOn] = [message(2, "ada:gpt", 1, turn("id-1")), turn("id-1")];
    const continued = message(3, "ada:gpt", 2, { turn: { ...goesOn.turn, continues: "id-2" } });
    expect(earlierAnswers([waiting, continued]).size).toBe(0);
    const again = message(4, "ada:gpt", 3, turn("id-1"));
    expect([...earlierAnswers([waiting, continued, again])]).toEqual([
      ["id-2", "1 of 2"],
      ["id-3", "1 of 2"],
    ]);
  });

  test("are replaced once the same agent answers the same message again", () => {
    const failed = message(2, "ada:gpt", 1, turn("id-1"));
    const others = [message(3, "bob:gpt", 2, turn("id-1")), message(4, "ada:gpt", 3, turn("id-9"))];
    expect(earlierAnswers([failed, ...others]).size).toBe(0);
    const again = message(5, "ada:gpt", 4, turn("id-1"));
    expect([...earlierAnswers([failed, ...others, again])]).toEqual([["id-2", "1 of 2"]]);
  });
});
