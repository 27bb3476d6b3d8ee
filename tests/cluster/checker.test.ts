import { describe, expect, test } from "bun:test";
import type { EventFrame, Message } from "@parley/protocol";
import { aMessage, ann } from "../../packages/client/test/support/records.ts";
import { check, explain } from "./checker.ts";
import { checkEvents } from "./checks/events.ts";
import type { FinalChat, FinalState } from "./final-state.ts";
import type { Operation, Outcome, Request, Result } from "./history.ts";

const CHAT = "chat";
const TITLE = "A chat";
const ANSWER = "All of it.";
const AGENT = "ann:claude";

/** Builds a history from calls that read like a script. */
class Script {
  readonly history: Operation[] = [];

  constructor() {
    this.did("ann", { kind: "start", title: TITLE, usernames: ["bob", AGENT] }, [0, 1], "ok", {
      id: CHAT,
    });
  }

  did(
    client: string,
    request: Request,
    [invoked, completed]: [number, number],
    outcome: Outcome = "ok",
    result: Result = {},
  ): this {
    const answered = outcome === "unknown" ? Number.POSITIVE_INFINITY : completed;
    const index = this.history.length;
    const operation = { index, client, invoked, completed: answered, outcome, result };
    this.history.push({ ...request, ...operation });
    return this;
  }

  /** By default the message has this seq. */
  sent(
    client: string,
    seq: number,
    times: [number, number],
    outcome: Outcome = "ok",
    key = `k${seq}`,
    result: Result = { id: `m${seq}`, seq },
  ): this {
    const request: Request = { kind: "send", chat: CHAT, key, content: `says ${seq}` };
    return this.did(client, request, times, outcome, outcome === "ok" ? result : {});
  }
}

function message(seq: number, given: Partial<Message> = {}): Message {
  return aMessage({
    id: `m${seq}`,
    seq,
    version: seq,
    conversation_id: CHAT,
    sender: ann,
    content: `says ${seq}`,
    client_msg_id: `k${seq}`,
    ...given,
  });
}

function answerTo(seq: number, given: Partial<Message> = {}): Message {
  const turn = {
    status: "complete" as const,
    triggered_by: `m${seq}`,
    model: "model",
    error: null,
    usage: null,
  };
  return message(seq + 1, {
    sender: { username: AGENT, kind: "agent", display_name: "Claude", version: 0 },
    content: ANSWER,
    client_msg_id: null,
    turn,
    ...given,
  });
}

interface Given extends Partial<FinalChat> {
  usage?: FinalState["usage"];
  receipts?: FinalState["receipts"];
}

function state({ usage = [], receipts = [], ...given }: Given = {}): FinalState {
  const chat: FinalChat = {
    id: CHAT,
    title: TITLE,
    seq: 100,
    members: ["ann", "bob", AGENT],
    reads: {},
    messages: [],
    reacted: {},
    ...given,
  };
  return { chats: [chat], receipts, usage, answer: ANSWER };
}

const wrongs = ({ history }: Script, final: FinalState) =>
  check(history, final).map(({ what }) => what);

describe("messages", () => {
  test("an acknowledged message exists, a refused one does not, and one with unknown outcome may exist", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .sent("ann", 2, [12, 13], "unknown")
      .sent("ann", 3, [14, 15], "unknown")
      .sent("ann", 4, [16, 17], "fail");
    expect(wrongs(script, state({ messages: [message(1), message(2)] }))).toEqual([]);
  });

  test("a missing message is reported", () => {
    const script = new Script().sent("ann", 1, [10, 11]);
    expect(wrongs(script, state())).toEqual(["an acknowledged message is missing"]);
  });

  test("a duplicate is reported", () => {
    const script = new Script().sent("ann", 1, [10, 11], "unknown").sent("ann", 1, [12, 13]);
    const twice = [message(1), message(2, { client_msg_id: "k1" })];
    expect(wrongs(script, state({ messages: twice }))).toEqual(["a message exists more than once"]);
  });

  test("a refused message that exists is reported", () => {
    const script = new Script().sent("ann", 1, [10, 11], "fail");
    expect(wrongs(script, state({ messages: [message(1)] }))).toEqual(["a refused message exists"]);
  });

  test("a message that nobody sent is reported", () => {
    expect(wrongs(new Script(), state({ messages: [message(1)] }))).toEqual(["nobody sent m1"]);
  });

  test("a second message from a resend is reported", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .sent("ann", 2, [12, 13], "ok", "k1", { id: "m2", seq: 2 });
    expect(wrongs(script, state({ messages: [message(1)] }))).toContain(
      "resending returned another message",
    );
  });

  test("a message with another seq than acknowledged is reported", () => {
    const script = new Script().sent("ann", 1, [10, 11]);
    expect(wrongs(script, state({ messages: [message(1, { seq: 5, version: 5 })] }))).toEqual([
      "a message differs from its acknowledgement",
    ]);
  });

  test("two messages with one seq, or out of order, are reported", () => {
    const script = new Script()
      .sent("ann", 1, [10, 20], "unknown")
      .sent("bob", 2, [10, 20], "unknown");
    const bobs = message(2, {
      seq: 1,
      sender: { username: "bob", kind: "human", display_name: "", version: 0 },
    });
    expect(wrongs(script, state({ messages: [message(1), bobs] }))).toEqual([
      `m2 is out of order in ${TITLE}`,
    ]);
  });
});

describe("order", () => {
  test("overlapping sends may be stored in any order", () => {
    const script = new Script().sent("ann", 2, [10, 20]).sent("ann", 1, [15, 25]);
    expect(wrongs(script, state({ messages: [message(1), message(2)] }))).toEqual([]);
  });

  test("a send that began after another was acknowledged, and has a lower seq, is reported", () => {
    const script = new Script().sent("ann", 2, [10, 11]).sent("ann", 1, [12, 13]);
    expect(wrongs(script, state({ messages: [message(1), message(2)] }))).toEqual([
      "a change has seq 1, but began after seq 2 was acknowledged",
    ]);
  });

  test("sends with unknown outcome, and edits, are reported like sends if they are out of order", () => {
    const unknown = new Script().sent("ann", 2, [10, 11]).sent("ann", 1, [12, 13], "unknown");
    const final = state({ messages: [message(1), message(2)] });
    expect(wrongs(unknown, final)).toEqual([
      "a change has seq 1, but began after seq 2 was acknowledged",
    ]);
    const edit: Request = { kind: "edit", chat: CHAT, message: "m1", content: "edited" };
    const edited = new Script()
      .sent("ann", 1, [10, 11])
      .sent("ann", 4, [12, 13])
      .did("ann", edit, [14, 15], "ok", { seq: 3 });
    const messages = [message(1, { content: "edited", version: 3 }), message(4)];
    expect(wrongs(edited, state({ messages }))).toEqual([
      "a change has seq 3, but began after seq 4 was acknowledged",
    ]);
  });

  test("a message that is sent again keeps its first seq", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11], "unknown")
      .sent("ann", 2, [12, 13])
      .sent("ann", 1, [14, 15]);
    expect(wrongs(script, state({ messages: [message(1), message(2)] }))).toEqual([]);
    const refused = new Script()
      .sent("ann", 2, [10, 11], "fail")
      .sent("ann", 1, [12, 13])
      .sent("ann", 2, [14, 15]);
    expect(wrongs(refused, state({ messages: [message(1), message(2)] }))).toEqual([]);
  });
});

describe("edits and deletions", () => {
  const edit = (content: string): Request => ({ kind: "edit", chat: CHAT, message: "m1", content });
  const remove: Request = { kind: "delete", chat: CHAT, message: "m1" };
  const wrong = "a message has the wrong content";

  test("the last edit wins, and any of several overlapping edits may be the last", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .did("ann", edit("one"), [12, 13], "ok", { seq: 2 })
      .did("ann", edit("two"), [14, 18], "unknown")
      .did("ann", edit("three"), [15, 17], "ok", { seq: 4 });
    const says = (content: string, version: number) =>
      wrongs(script, state({ messages: [message(1, { content, version })] }));
    expect(says("three", 4)).toEqual([]);
    expect(says("two", 5)).toEqual([]);
    expect(says("one", 4)).toEqual([wrong]);
    expect(says("says 1", 4)).toEqual([wrong]);
    expect(says("three", 3)).toEqual([wrong]);
  });

  test("the counter orders overlapping edits", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .did("ann", edit("one"), [12, 20], "ok", { seq: 3 })
      .did("ann", edit("two"), [12, 20], "ok", { seq: 2 });
    const says = (content: string) =>
      wrongs(script, state({ messages: [message(1, { content, version: 3 })] }));
    expect(says("one")).toEqual([]);
    expect(says("two")).toEqual([wrong]);
  });

  test("a refused edit that took effect is reported", () => {
    const script = new Script().sent("ann", 1, [10, 11]).did("ann", edit("no"), [12, 13], "fail");
    expect(wrongs(script, state({ messages: [message(1, { content: "no" })] }))).toEqual([wrong]);
  });

  test("a deleted message is gone, and others are not", () => {
    const script = new Script().sent("ann", 1, [10, 11]).did("ann", remove, [12, 13]);
    expect(wrongs(script, state())).toEqual([]);
    expect(wrongs(script, state({ messages: [message(1)] }))).toEqual(["a deleted message exists"]);
    const refused = new Script().sent("ann", 1, [10, 11]).did("bob", remove, [12, 13], "fail");
    expect(wrongs(refused, state())).toEqual(["an acknowledged message is missing"]);
    const unknown = new Script().sent("ann", 1, [10, 11]).did("ann", remove, [12, 13], "unknown");
    expect(wrongs(unknown, state())).toEqual([]);
    expect(wrongs(unknown, state({ messages: [message(1)] }))).toEqual([]);
  });
});

describe("reactions", () => {
  const react = (on: boolean): Request => {
    return { kind: "react", chat: CHAT, message: "m1", emoji: "👍", on };
  };
  const shown = (count: number, ...reactors: string[]) =>
    state({
      messages: [
        message(1, { reactions: count > 0 ? [{ emoji: "👍", count, reacted: false }] : [] }),
      ],
      reacted: {
        ann: { m1: reactors.includes("ann") ? ["👍"] : [] },
        bob: { m1: reactors.includes("bob") ? ["👍"] : [] },
      },
    });
  const sent = () => new Script().sent("ann", 1, [10, 11]);

  test("have the state that each person last set", () => {
    const script = sent()
      .did("ann", react(true), [12, 13])
      .did("bob", react(true), [12, 13])
      .did("bob", react(false), [14, 15]);
    expect(wrongs(script, shown(1, "ann"))).toEqual([]);
    expect(wrongs(script, shown(2, "ann", "bob"))).toEqual([
      "bob has reacted with 👍",
      "2 reactions with 👍, where there are 1 to 1",
    ]);
    expect(wrongs(script, shown(1))).toEqual(["ann has not reacted with 👍"]);
  });

  test("with unknown outcome may exist at most once", () => {
    const script = sent().did("ann", react(true), [12, 13], "unknown");
    expect(wrongs(script, shown(1, "ann"))).toEqual([]);
    expect(wrongs(script, shown(0))).toEqual([]);
    expect(wrongs(script, shown(2, "ann"))).toEqual([
      "2 reactions with 👍, where there are 0 to 1",
    ]);
  });

  test("that nobody made are reported", () => {
    expect(wrongs(sent(), shown(1))).toEqual(["1 reactions with 👍, where there are 0 to 0"]);
  });
});

describe("conversations", () => {
  const start = (title: string): Request => ({ kind: "start", title, usernames: [] });
  const setMember = (on: boolean): Request => ({
    kind: "membership",
    chat: CHAT,
    username: "bob",
    on,
  });

  test("that were started exist once", () => {
    const script = new Script().did("bob", start("Lost"), [2, 3], "ok", { id: "lost" });
    expect(wrongs(script, state())).toEqual(["an acknowledged conversation is missing: Lost"]);
    const twice = state();
    twice.chats = [...twice.chats, { ...(twice.chats[0] as FinalChat), id: "other" }];
    expect(wrongs(new Script(), twice)).toEqual([`a conversation exists more than once: ${TITLE}`]);
    const refused = new Script().did("bob", start("Refused"), [2, 3], "fail");
    const made = state();
    const other = { ...(made.chats[0] as FinalChat), id: "other", title: "Refused" };
    made.chats = [...made.chats, { ...other, members: ["bob"] }];
    expect(wrongs(refused, made)).toEqual(["a refused conversation exists: Refused"]);
    expect(wrongs(new Script(), made)).toEqual(["nobody started other"]);
  });

  test("have the members that were last set", () => {
    const removed = new Script().did("ann", setMember(false), [2, 3]);
    expect(wrongs(removed, state())).toEqual([`bob is still in ${TITLE}`]);
    expect(wrongs(removed, state({ members: ["ann", AGENT] }))).toEqual([]);
    const again = removed.did("ann", setMember(true), [4, 5]);
    expect(wrongs(again, state())).toEqual([]);
    expect(wrongs(again, state({ members: ["ann", AGENT] }))).toEqual([
      `bob is no longer in ${TITLE}`,
    ]);
    expect(wrongs(new Script(), state({ members: ["ann", "bob", AGENT, "eve"] }))).toEqual([
      `eve is still in ${TITLE}`,
    ]);
  });

  test("are read at least up to the acknowledged seq", () => {
    const read: Request = { kind: "read", chat: CHAT, seq: 7 };
    const script = new Script().did("bob", read, [2, 3]);
    expect(wrongs(script, state({ reads: { bob: 7 } }))).toEqual([]);
    expect(wrongs(script, state({ reads: { bob: 6 } }))).toEqual([
      `bob has read ${TITLE} up to 6 only`,
    ]);
    expect(wrongs(script, state({ reads: { bob: 101 } }))).toEqual([
      `bob has read ${TITLE} beyond its end, 100`,
    ]);
    const sent = new Script().sent("ann", 5, [2, 3]);
    expect(wrongs(sent, state({ messages: [message(5)], reads: { ann: 4 } }))).toEqual([
      `ann has read ${TITLE} up to 4 only`,
    ]);
  });
});

describe("turns", () => {
  const question = message(1, { content: `@${AGENT} what?`, mentions: [AGENT] });
  const asked = () =>
    new Script().did(
      "ann",
      { kind: "send", chat: CHAT, key: "k1", content: question.content, asks: true },
      [10, 11],
      "ok",
      { id: "m1", seq: 1 },
    );
  const receipts = [{ status: "complete", usage: { input_tokens: 3, output_tokens: 4 } }];
  const usage = [{ turns: 1, failures: 0, input_tokens: 3, output_tokens: 4 }];
  const after = (...answers: Message[]) =>
    wrongs(asked(), state({ messages: [question, ...answers], receipts, usage }));
  const cutOff = (content: string, code: "interrupted" | "internal" = "interrupted") => {
    const { turn } = answerTo(1);
    const error = { code, message: "Try again." };
    return answerTo(1, { content, turn: turn && { ...turn, status: "failed", error } });
  };

  test("end complete or interrupted, with a prefix of the answer", () => {
    expect(after(answerTo(1))).toEqual([]);
    expect(after(cutOff("All"))).toEqual([]);
    expect(after(cutOff("Try again."))).toEqual([]);
    expect(after(answerTo(1, { finalized_at: null }))).toEqual([
      `a turn is not finished: m2 «${ANSWER}»`,
    ]);
    expect(after(answerTo(1, { content: "All it." }))).toEqual([
      "a complete turn lacks content: m2 «All it.»",
    ]);
    expect(after(cutOff("All All"))).toEqual([
      "an answer has content that the model did not send: m2 «All All»",
    ]);
    expect(after(cutOff("All", "internal"))).toEqual(["a turn failed with internal: m2 «All»"]);
  });

  test("answer every question exactly once", () => {
    expect(after()).toEqual([`${AGENT} has not answered`]);
    expect(after(answerTo(1), answerTo(1, { id: "m3", seq: 3, version: 3 }))).toEqual([
      `${AGENT} answers m1 more than once`,
    ]);
  });

  test("are charged as on their receipts", () => {
    const final = state({ messages: [question, answerTo(1)], receipts, usage: [] });
    expect(wrongs(asked(), final)).toEqual([expect.stringContaining("was charged")]);
  });
});

describe("events", () => {
  const counted = (seq: number, method = "events.messageNew") =>
    ({ method, params: {}, at: { conversation_id: CHAT, seq } }) as unknown as EventFrame;
  const delta = (text: string, offset: number) =>
    ({ method: "events.messageDelta", params: { id: "m2", delta: text, offset } }) as EventFrame;
  const received = (frames: EventFrame[], isDatabaseCrashed = false) =>
    checkEvents(frames, { [CHAT]: 97 }, state({ messages: [answerTo(1)] }), isDatabaseCrashed).map(
      ({ what }) => what,
    );
  const rest = [counted(98), counted(99), counted(100)];

  test("come in order, without gaps and without repeats, up to the end", () => {
    expect(received(rest)).toEqual([]);
    expect(received([counted(98), counted(100)])).toEqual([
      "received events.messageNew of chat at 100 after 98",
    ]);
    expect(received([...rest, counted(100)])).toEqual([
      "received events.messageNew of chat at 100 after 100",
    ]);
    expect(received([counted(98)])).toEqual(["received chat up to 98, not 100"]);
    expect(received([...rest, counted(100, "events.conversationNew")])).toEqual([
      "received events.conversationNew of chat at 100 after 100",
    ]);
  });

  test("carry deltas of the final content, each once", () => {
    expect(received([...rest, delta("All ", 4), delta("of it.", 10)])).toEqual([]);
    expect(received([...rest, delta("of it.", 10)])).toEqual([]);
    expect(received([...rest, delta("All ", 4), delta("All ", 4)])).toHaveLength(1);
    expect(received([...rest, delta("Nothing", 7)])).toHaveLength(1);
    expect(received([...rest, delta(" More.", 16)])).toHaveLength(1);
  });
});

test("a violation is explained with its operations and their neighbours", () => {
  const script = new Script();
  for (let seq = 1; seq <= 20; seq++) script.sent("ann", seq, [10 * seq, 10 * seq + 1]);
  const all = Array.from({ length: 20 }, (_, seq) => message(seq + 1));
  const [violation] = check(
    script.history,
    state({ messages: all.filter(({ seq }) => seq !== 10) }),
  );
  const lines = violation ? explain(violation, script.history).split("\n") : [];
  expect(lines).toHaveLength(10);
  expect(lines[0]).toBe("an acknowledged message is missing");
  expect(lines.filter((line) => line.startsWith("  >"))).toEqual([
    expect.stringContaining('#10 ann 100.0–101.0 ms {"kind":"send"'),
  ]);
});
