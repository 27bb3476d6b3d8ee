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

/** A history, written as a list of who asked for what and when it was answered. */
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

  /** By default it becomes the message at its place. */
  sent(
    client: string,
    place: number,
    times: [number, number],
    outcome: Outcome = "ok",
    key = `k${place}`,
    result: Result = { id: `m${place}`, place },
  ): this {
    const request: Request = { kind: "send", chat: CHAT, key, content: `says ${place}` };
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
  test("what was acknowledged is there, what was refused is not, and what is unknown may be", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .sent("ann", 2, [12, 13], "unknown")
      .sent("ann", 3, [14, 15], "unknown")
      .sent("ann", 4, [16, 17], "fail");
    expect(wrongs(script, state({ messages: [message(1), message(2)] }))).toEqual([]);
  });

  test("one that is lost is found out", () => {
    const script = new Script().sent("ann", 1, [10, 11]);
    expect(wrongs(script, state())).toEqual(["a message that was acknowledged is lost"]);
  });

  test("one that is there twice is found out", () => {
    const script = new Script().sent("ann", 1, [10, 11], "unknown").sent("ann", 1, [12, 13]);
    const twice = [message(1), message(2, { client_msg_id: "k1" })];
    expect(wrongs(script, state({ messages: twice }))).toEqual([
      "a message is there more than once",
    ]);
  });

  test("one that was refused and is there is found out", () => {
    const script = new Script().sent("ann", 1, [10, 11], "fail");
    expect(wrongs(script, state({ messages: [message(1)] }))).toEqual([
      "a message is there though it was refused",
    ]);
  });

  test("one that nobody sent is found out", () => {
    expect(wrongs(new Script(), state({ messages: [message(1)] }))).toEqual(["nobody has sent m1"]);
  });

  test("one that sending again made anew is found out", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .sent("ann", 2, [12, 13], "ok", "k1", { id: "m2", place: 2 });
    expect(wrongs(script, state({ messages: [message(1)] }))).toContain(
      "sending again was answered with another message",
    );
  });

  test("one that is elsewhere than it was said to be is found out", () => {
    const script = new Script().sent("ann", 1, [10, 11]);
    expect(wrongs(script, state({ messages: [message(1, { seq: 5, version: 5 })] }))).toEqual([
      "a message is not where it was said to be",
    ]);
  });

  test("two in one place, or out of order, are found out", () => {
    const script = new Script()
      .sent("ann", 1, [10, 20], "unknown")
      .sent("bob", 2, [10, 20], "unknown");
    const bobs = message(2, {
      seq: 1,
      sender: { username: "bob", kind: "human", display_name: "", version: 0 },
    });
    expect(wrongs(script, state({ messages: [message(1), bobs] }))).toEqual([
      `m2 is out of place in ${TITLE}`,
    ]);
  });
});

describe("order", () => {
  test("what overlaps may come in any order", () => {
    const script = new Script().sent("ann", 2, [10, 20]).sent("ann", 1, [15, 25]);
    expect(wrongs(script, state({ messages: [message(1), message(2)] }))).toEqual([]);
  });

  test("what began after something else was done, and is before it, is found out", () => {
    const script = new Script().sent("ann", 2, [10, 11]).sent("ann", 1, [12, 13]);
    expect(wrongs(script, state({ messages: [message(1), message(2)] }))).toEqual([
      "a change has place 1 after one at 2 was done",
    ]);
  });

  test("so is what nobody was told of, and an edit", () => {
    const unknown = new Script().sent("ann", 2, [10, 11]).sent("ann", 1, [12, 13], "unknown");
    const final = state({ messages: [message(1), message(2)] });
    expect(wrongs(unknown, final)).toEqual(["a change has place 1 after one at 2 was done"]);
    const edit: Request = { kind: "edit", chat: CHAT, message: "m1", content: "edited" };
    const edited = new Script()
      .sent("ann", 1, [10, 11])
      .sent("ann", 4, [12, 13])
      .did("ann", edit, [14, 15], "ok", { place: 3 });
    const messages = [message(1, { content: "edited", version: 3 }), message(4)];
    expect(wrongs(edited, state({ messages }))).toEqual([
      "a change has place 3 after one at 4 was done",
    ]);
  });

  test("a message that was sent again has the place of the first time", () => {
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
  const wrong = "a message does not say what it should";

  test("the last edit counts, and any of those that overlap may be the last", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .did("ann", edit("one"), [12, 13], "ok", { place: 2 })
      .did("ann", edit("two"), [14, 18], "unknown")
      .did("ann", edit("three"), [15, 17], "ok", { place: 4 });
    const says = (content: string, version: number) =>
      wrongs(script, state({ messages: [message(1, { content, version })] }));
    expect(says("three", 4)).toEqual([]);
    expect(says("two", 5)).toEqual([]);
    expect(says("one", 4)).toEqual([wrong]);
    expect(says("says 1", 4)).toEqual([wrong]);
    expect(says("three", 3)).toEqual([wrong]);
  });

  test("of edits that overlap the counter tells the last", () => {
    const script = new Script()
      .sent("ann", 1, [10, 11])
      .did("ann", edit("one"), [12, 20], "ok", { place: 3 })
      .did("ann", edit("two"), [12, 20], "ok", { place: 2 });
    const says = (content: string) =>
      wrongs(script, state({ messages: [message(1, { content, version: 3 })] }));
    expect(says("one")).toEqual([]);
    expect(says("two")).toEqual([wrong]);
  });

  test("an edit that was refused and shows is found out", () => {
    const script = new Script().sent("ann", 1, [10, 11]).did("ann", edit("no"), [12, 13], "fail");
    expect(wrongs(script, state({ messages: [message(1, { content: "no" })] }))).toEqual([wrong]);
  });

  test("what was deleted is gone, and what nobody deleted is not", () => {
    const script = new Script().sent("ann", 1, [10, 11]).did("ann", remove, [12, 13]);
    expect(wrongs(script, state())).toEqual([]);
    expect(wrongs(script, state({ messages: [message(1)] }))).toEqual([
      "a message is there though it was deleted",
    ]);
    const refused = new Script().sent("ann", 1, [10, 11]).did("bob", remove, [12, 13], "fail");
    expect(wrongs(refused, state())).toEqual(["a message that was acknowledged is lost"]);
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

  test("are what each person last made them", () => {
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

  test("that are unknown may be there or not, once", () => {
    const script = sent().did("ann", react(true), [12, 13], "unknown");
    expect(wrongs(script, shown(1, "ann"))).toEqual([]);
    expect(wrongs(script, shown(0))).toEqual([]);
    expect(wrongs(script, shown(2, "ann"))).toEqual([
      "2 reactions with 👍, where there are 0 to 1",
    ]);
  });

  test("that nobody made are found out", () => {
    expect(wrongs(sent(), shown(1))).toEqual(["1 reactions with 👍, where there are 0 to 0"]);
  });
});

describe("conversations", () => {
  const start = (title: string): Request => ({ kind: "start", title, usernames: [] });
  const seat = (on: boolean): Request => ({ kind: "seat", chat: CHAT, username: "bob", on });

  test("that were started are there once", () => {
    const script = new Script().did("bob", start("Lost"), [2, 3], "ok", { id: "lost" });
    expect(wrongs(script, state())).toEqual(["a conversation is lost: Lost"]);
    const twice = state();
    twice.chats = [...twice.chats, { ...(twice.chats[0] as FinalChat), id: "other" }];
    expect(wrongs(new Script(), twice)).toEqual([
      `a conversation is there more than once: ${TITLE}`,
    ]);
    const refused = new Script().did("bob", start("Refused"), [2, 3], "fail");
    const made = state();
    const other = { ...(made.chats[0] as FinalChat), id: "other", title: "Refused" };
    made.chats = [...made.chats, { ...other, members: ["bob"] }];
    expect(wrongs(refused, made)).toEqual([
      "a conversation is there though it was refused: Refused",
    ]);
    expect(wrongs(new Script(), made)).toEqual(["nobody has started other"]);
  });

  test("have the members that they were last given", () => {
    const removed = new Script().did("ann", seat(false), [2, 3]);
    expect(wrongs(removed, state())).toEqual([`bob is still in ${TITLE}`]);
    expect(wrongs(removed, state({ members: ["ann", AGENT] }))).toEqual([]);
    const again = removed.did("ann", seat(true), [4, 5]);
    expect(wrongs(again, state())).toEqual([]);
    expect(wrongs(again, state({ members: ["ann", AGENT] }))).toEqual([
      `bob is no longer in ${TITLE}`,
    ]);
    expect(wrongs(new Script(), state({ members: ["ann", "bob", AGENT, "eve"] }))).toEqual([
      `eve is still in ${TITLE}`,
    ]);
  });

  test("are read at least as far as was acknowledged", () => {
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
      { id: "m1", place: 1 },
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

  test("are finished, whole or cut off, and say nothing else", () => {
    expect(after(answerTo(1))).toEqual([]);
    expect(after(cutOff("All"))).toEqual([]);
    expect(after(cutOff("Try again."))).toEqual([]);
    expect(after(answerTo(1, { finalized_at: null }))).toEqual([
      `a turn is not finished: m2 «${ANSWER}»`,
    ]);
    expect(after(answerTo(1, { content: "All it." }))).toEqual([
      "an answer is not whole: m2 «All it.»",
    ]);
    expect(after(cutOff("All All"))).toEqual([
      "an answer says what its agent has not said: m2 «All All»",
    ]);
    expect(after(cutOff("All", "internal"))).toEqual(["a turn failed of internal: m2 «All»"]);
  });

  test("answer every question, once", () => {
    expect(after()).toEqual([`${AGENT} has not answered`]);
    expect(after(answerTo(1), answerTo(1, { id: "m3", seq: 3, version: 3 }))).toEqual([
      `${AGENT} answers m1 more than once`,
    ]);
  });

  test("are charged as their receipts say", () => {
    const final = state({ messages: [question, answerTo(1)], receipts, usage: [] });
    expect(wrongs(asked(), final)).toEqual([expect.stringContaining("was charged")]);
  });
});

describe("events", () => {
  const counted = (seq: number, method = "events.messageNew") =>
    ({ method, params: {}, at: { conversation_id: CHAT, seq } }) as unknown as EventFrame;
  const delta = (text: string, offset: number) =>
    ({ method: "events.messageDelta", params: { id: "m2", delta: text, offset } }) as EventFrame;
  const heard = (frames: EventFrame[], isPowerLost = false) =>
    checkEvents(frames, { [CHAT]: 97 }, state({ messages: [answerTo(1)] }), isPowerLost).map(
      ({ what }) => what,
    );
  const rest = [counted(98), counted(99), counted(100)];

  test("come in order, without gaps and without repeats, up to the end", () => {
    expect(heard(rest)).toEqual([]);
    expect(heard([counted(98), counted(100)])).toEqual([
      "heard events.messageNew of chat at 100 after 98",
    ]);
    expect(heard([...rest, counted(100)])).toEqual([
      "heard events.messageNew of chat at 100 after 100",
    ]);
    expect(heard([counted(98)])).toEqual(["heard chat up to 98, not 100"]);
    expect(heard([...rest, counted(100, "events.conversationNew")])).toEqual([
      "heard events.conversationNew of chat at 100 after 100",
    ]);
  });

  test("bring pieces of what a message says in the end, each once", () => {
    expect(heard([...rest, delta("All ", 4), delta("of it.", 10)])).toEqual([]);
    expect(heard([...rest, delta("of it.", 10)])).toEqual([]);
    expect(heard([...rest, delta("All ", 4), delta("All ", 4)])).toHaveLength(1);
    expect(heard([...rest, delta("Nothing", 7)])).toHaveLength(1);
    expect(heard([...rest, delta(" More.", 16)])).toHaveLength(1);
  });
});

test("a violation is told with its operations and their neighbours", () => {
  const script = new Script();
  for (let place = 1; place <= 20; place++) script.sent("ann", place, [10 * place, 10 * place + 1]);
  const all = Array.from({ length: 20 }, (_, place) => message(place + 1));
  const [violation] = check(
    script.history,
    state({ messages: all.filter(({ seq }) => seq !== 10) }),
  );
  const lines = violation ? explain(violation, script.history).split("\n") : [];
  expect(lines).toHaveLength(10);
  expect(lines[0]).toBe("a message that was acknowledged is lost");
  expect(lines.filter((line) => line.startsWith("  >"))).toEqual([
    expect.stringContaining('#10 ann 100.0–101.0 ms {"kind":"send"'),
  ]);
});
