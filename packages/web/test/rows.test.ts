import { describe, expect, test } from "bun:test";
import type { LocalMessage } from "@parley/client";
import { byDay, DAYS, sinceDays } from "../src/agents/usage.ts";
import { rowsOf } from "../src/chat/rows.ts";

const message = (seq: number, username: string, minute: number, rest = {}): LocalMessage => ({
  id: `id-${seq}`,
  conversation_id: "chat",
  seq,
  version: seq,
  sender: { username, kind: "human", display_name: username },
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
  delivery: "sent",
  ...rest,
});

describe("rows", () => {
  test("messages of one sender within minutes are one run", () => {
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

  test("a new day is named above its first message", () => {
    const before = { created_at: new Date(2020, 0, 1, 12).toISOString() };
    const rows = rowsOf([message(1, "ada", 0, before), message(2, "ada", 0)], "ada", null);
    expect(rows[0]?.day).toContain("2020");
    expect(rows.every(({ day, first }) => day !== null && first)).toBe(true);
  });

  test("rows of messages that stayed are taken over, whatever came after them", () => {
    const messages = [
      message(1, "ada", 0),
      message(2, "bob", 1),
      message(3, "bob", 2),
      message(4, "bob", 20),
    ];
    const made = rowsOf(messages, "ada", 2);
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
      expect([name, rowsOf(next, "ada", 2, made)]).toEqual([name, rowsOf(next, "ada", 2)]);
    }
    expect(rowsOf([...messages, message(5, "bob", 21)], "ada", 2, made)[0]).toBe(made[0]);
  });

  test("the line stands above the first message of another that was not read", () => {
    const messages = [message(1, "bob", 0), message(2, "ada", 1), message(3, "bob", 2)];
    const lines = (readUpTo: number | null) =>
      rowsOf(messages, "ada", readUpTo).map(({ fresh }) => fresh);
    expect(lines(null)).toEqual([false, false, false]);
    expect(lines(1)).toEqual([false, false, true]);
    expect(lines(0)).toEqual([true, false, false]);
    expect(lines(3)).toEqual([false, false, false]);
  });

  test("a message of one's own keeps its key when it gets its id", () => {
    const sent = message(7, "ada", 0, { client_msg_id: "local" });
    const sending = { ...sent, id: "local", seq: 0 };
    const keys = [sending, sent].map((one) => rowsOf([one], "ada", null)[0]?.key);
    expect(keys).toEqual(["local", "local"]);
  });
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

  test("is summed by day, with the days on which nothing happened", () => {
    const days = byDay([row("2026-11-15", 9), row("2026-11-15", 9), row("2025-01-01", 9)], now);
    expect(days.length).toBe(DAYS);
    expect(days.at(-1)).toEqual({ day: "2026-11-15", tokens: 20, turns: 2, failures: 0 });
    expect(days[0]).toMatchObject({ day: "2026-11-02", tokens: 0 });
    expect(sinceDays(DAYS, now)).toBe("2026-11-02T00:00:00.000Z");
  });
});
