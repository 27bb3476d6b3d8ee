import { afterEach, describe, expect, jest, test } from "bun:test";
import { until } from "@parley/testkit/until.ts";
import fc from "fast-check";
import pino from "pino";
import {
  type Change,
  type EventChange,
  type Membership,
  messageDelta,
} from "../src/changes/change.ts";
import { Sequencer, type SequencerOptions } from "../src/changes/sequencer.ts";
import { human } from "./support/broker.ts";
import { summaries, TestChangeLog } from "./support/change-log.ts";
import { event } from "./support/changes.ts";

const CHAT = "0190f000-0000-7000-8000-000000000001";
const log = pino({ level: "silent" });
/** Longer than any test: a timer with it never fires. */
const NEVER_MS = 3_600_000;

const created: Sequencer[] = [];
afterEach(() => {
  jest.useRealTimers();
  for (const each of created.splice(0)) each.stop();
});

function testSequencer(options: Partial<SequencerOptions> = {}) {
  const changeLog = new TestChangeLog();
  changeLog.addConversation(CHAT, "alice", "bob");
  const delivered: EventChange[] = [];
  const lost: string[] = [];
  const missedLeavings: Membership[] = [];
  const order = new Sequencer({
    log,
    deliver: (change) => delivered.push(change),
    readLog: async () => {
      for (const { changes } of (await changeLog.read(0)) ?? []) {
        for (const change of changes) {
          const { at, leaves } = change as EventChange;
          if (at && order.isMissing(at, leaves)) order.receive(change as EventChange);
        }
      }
    },
    readConversation: changeLog.readConversation,
    lost: (conversation) => lost.push(conversation),
    missedLeaving: (leaves) => missedLeavings.push(leaves),
    gapGraceMs: 1,
    retryMs: 1,
    ...options,
  });
  created.push(order);
  const received = () => summaries(delivered.map(({ data }) => JSON.parse(data)));
  const follow = (seq = 0) => {
    order.open(CHAT);
    order.begin(CHAT, seq);
  };
  const commit = (text: string) => asEvent(changeLog.commitMessage(CHAT, text));
  return { changeLog, delivered, lost, missedLeavings, order, received, follow, commit };
}

function asEvent(change: Change | undefined): EventChange {
  if (change?.kind !== "event") throw new Error("not an event");
  return change;
}

/** An event that increments no counter, such as typing. */
const uncounted = (text: string): EventChange =>
  event({
    frame: { method: "events.messageDeleted", params: { conversation_id: CHAT, ids: [text] } },
    to: { conversation: CHAT },
  });

describe("order", () => {
  test("each event is delivered immediately and once", () => {
    const { order, received, follow, commit, changeLog } = testSequencer({ gapGraceMs: NEVER_MS });
    follow();
    const [one, two, three] = [commit("one"), commit("two"), commit("three")];
    for (const change of [one, two, one, two, three, three]) order.receive(change);
    expect(received()).toEqual(["one", "two", "three"]);
    expect(changeLog.reads).toBe(0);
  });

  test("an uncounted event is delivered in the order of arrival", () => {
    const { order, received, follow, commit } = testSequencer({ gapGraceMs: NEVER_MS });
    follow();
    const [one, two] = [commit("one"), commit("two")];
    for (const change of [one, uncounted("typing"), two]) order.receive(change);
    expect(received()).toEqual(["one", "typing", "two"]);
  });

  test("a delta waits for its placeholder", async () => {
    const { order, received, follow, commit } = testSequencer();
    follow();
    const [question, placeholder] = [commit("question"), commit("placeholder")];
    order.receive(messageDelta("m", CHAT, "word", 4, placeholder.at?.seq));
    expect(received()).toEqual([]);
    await until(() => received().length === 3, "the log to be read");
    expect(received()).toEqual(["question", "placeholder", "messageDelta"]);
    order.receive(question);
    order.receive(messageDelta("m", CHAT, "more", 8, placeholder.at?.seq));
    expect(received()).toHaveLength(4);
  });

  test("a gap in one conversation does not delay another", () => {
    const { order, received, follow, commit, changeLog } = testSequencer({ gapGraceMs: NEVER_MS });
    const other = "0190f000-0000-7000-8000-000000000002";
    changeLog.addConversation(other, "alice");
    follow();
    order.open(other);
    order.begin(other, 0);
    commit("lost");
    order.receive(commit("held back"));
    order.receive(asEvent(changeLog.commitMessage(other, "elsewhere")));
    expect(received()).toEqual(["elsewhere"]);
  });

  test("events of a conversation that nobody here follows are dropped", () => {
    const { order, received, commit } = testSequencer();
    order.receive(commit("one"));
    order.receive(uncounted("typing"));
    expect(received()).toEqual([]);
  });
});

describe("gaps", () => {
  test("a gap filled by late events needs no read of the log", () => {
    const { order, received, follow, commit, changeLog } = testSequencer({ gapGraceMs: NEVER_MS });
    follow();
    const [one, two, three, four] = [commit("one"), commit("two"), commit("three"), commit("four")];
    order.receive(four);
    order.receive(uncounted("typing"));
    order.receive(two);
    order.receive(three);
    expect(received()).toEqual([]);
    order.receive(one);
    expect(received()).toEqual(["one", "two", "three", "four", "typing"]);
    expect(changeLog.reads).toBe(0);
  });

  test("events after a gap wait until the missing ones are read from the log", async () => {
    const { order, received, follow, commit, changeLog } = testSequencer();
    const { promise, resolve: release } = Promise.withResolvers<void>();
    changeLog.gate = promise;
    follow();
    commit("lost");
    order.receive(commit("two"));
    order.receive(uncounted("typing"));
    await until(() => changeLog.reads > 0, "the log is read");
    order.receive(commit("three"));
    order.receive(uncounted("typing more"));
    expect(received()).toEqual([]);
    release();
    await until(() => received().length === 5, "all five events");
    expect(received()).toEqual(["lost", "two", "typing", "three", "typing more"]);
  });

  test("a gap that shows only in the stored counter is filled", async () => {
    const { order, received, follow, commit, lost } = testSequencer();
    follow();
    commit("one");
    commit("two");
    order.begin(CHAT, 2);
    await until(() => received().length === 2, "both events");
    expect(received()).toEqual(["one", "two"]);
    expect(lost).toEqual([]);
  });

  test("a gap is filled once the log can be read again", async () => {
    const { order, received, follow, commit, changeLog } = testSequencer();
    follow();
    commit("lost");
    changeLog.failing = true;
    order.receive(commit("two"));
    await until(() => changeLog.reads > 2, "several tries");
    expect(received()).toEqual([]);
    changeLog.failing = false;
    await until(() => received().length === 2, "both events");
    expect(received()).toEqual(["lost", "two"]);
  });

  test("a gap followed by more events than can be held is given up", () => {
    const { order, received, follow, commit, lost } = testSequencer({
      maxHeld: 10,
      gapGraceMs: NEVER_MS,
    });
    follow();
    commit("lost");
    for (let count = 1; count < 12; count++) order.receive(commit(`${count}`));
    expect(lost).toEqual([CHAT]);
    expect(received()).toEqual([]);
  });

  test("a gap that the log does not fill is given up, and nothing newer is delivered", async () => {
    const { order, received, follow, commit, changeLog, lost } = testSequencer({ gapTimeoutMs: 5 });
    follow();
    commit("lost");
    changeLog.prune();
    order.receive(commit("two"));
    await until(() => lost.length > 0, "the gap is given up");
    order.receive(commit("three"));
    expect(lost).toEqual([CHAT]);
    expect(received()).toEqual([]);

    order.begin(CHAT, 3);
    order.receive(commit("four"));
    expect(received()).toEqual(["four"]);
  });

  test("a gap is not given up while events are delivered, although some event always waits", async () => {
    jest.useFakeTimers();
    let reads = 0;
    const { order, received, lost, follow, commit } = testSequencer({
      readLog: async () => void reads++,
      gapTimeoutMs: 100,
    });
    follow();
    const events = Array.from({ length: 20 }, (_, n) => commit(`${n}`));
    // Each pair arrives in reverse, and its first half only after the second half of the next pair.
    const pairs = Array.from({ length: 9 }, (_, pair) => [2 * pair + 3, 2 * pair]);
    for (const n of [1, ...pairs.flat(), 18]) {
      order.receive(events[n] as EventChange);
      jest.advanceTimersByTime(10);
      // The read of the log, which the timer has started, ends.
      await new Promise(process.nextTick);
    }
    expect(reads).toBeGreaterThan(10);
    expect(lost).toEqual([]);
    expect(received()).toEqual(events.map((_, n) => `${n}`));
  });

  test("nothing is delivered when the conversation is closed while its gap is read", async () => {
    const { order, received, follow, commit, changeLog } = testSequencer();
    const { promise, resolve: release } = Promise.withResolvers<void>();
    changeLog.gate = promise;
    follow();
    commit("lost");
    order.receive(commit("two"));
    await until(() => changeLog.reads > 0, "the log is read");
    order.close(CHAT);
    release();
    await Bun.sleep(0);
    expect(received()).toEqual([]);
  });
});

describe("the first delivered event", () => {
  test("no event is delivered before `begin`, and none that arrived before it", () => {
    const { order, received, commit } = testSequencer({ gapGraceMs: NEVER_MS });
    order.open(CHAT);
    const [one, two] = [commit("one"), commit("two")];
    order.receive(one);
    order.receive(uncounted("typing"));
    order.receive(two);
    order.begin(CHAT, 1);
    order.receive(two);
    order.receive(commit("three"));
    expect(received()).toEqual(["three"]);
  });

  test("delivery begins after events that the log had before the first value was known", () => {
    const { order, received, commit } = testSequencer({ gapGraceMs: NEVER_MS });
    order.open(CHAT);
    commit("one");
    // The reader of the log goes on to the next entry and does not come back to this one.
    expect(order.isMissing({ conversation_id: CHAT, seq: 1 })).toBe(false);
    order.begin(CHAT, 0);
    order.receive(commit("two"));
    expect(received()).toEqual(["two"]);
  });

  test("a second `begin` with a higher counter skips no event", () => {
    const { order, received, follow, commit } = testSequencer({ gapGraceMs: NEVER_MS });
    follow();
    const one = commit("one");
    order.begin(CHAT, 1);
    order.receive(one);
    expect(received()).toEqual(["one"]);
  });

  test("a second `begin` with a higher counter reads the missing events from the log", async () => {
    const { order, received, follow, commit } = testSequencer();
    follow();
    commit("one");
    order.begin(CHAT, 1);
    await until(() => received().length === 1, "the event");
    expect(received()).toEqual(["one"]);
  });
});

describe("who leaves by an event that is not delivered", () => {
  const leaves = { conversation: CHAT, users: ["bob"] };
  const testLeaving = () => {
    const { commit, ...rest } = testSequencer({ gapGraceMs: NEVER_MS });
    return { ...rest, commit, leaving: { ...commit("one"), leaves }, two: commit("two") };
  };

  test("is reported before delivery begins: a list of conversations may have been read before", () => {
    const { order, leaving, missedLeavings } = testLeaving();
    order.open(CHAT);
    order.receive(leaving);
    expect(missedLeavings).toEqual([leaves]);
    expect(order.isMissing({ conversation_id: CHAT, seq: 1 }, leaves)).toBe(false);
    expect(missedLeavings).toEqual([leaves, leaves]);
  });

  test.each(["other nodes", "the log"])("is reported if it comes late from %s", (source) => {
    const { order, leaving, two, missedLeavings, received } = testLeaving();
    order.open(CHAT);
    order.receive(two);
    order.begin(CHAT, 0);
    if (source === "the log") order.isMissing({ conversation_id: CHAT, seq: 1 }, leaves);
    else order.receive(leaving);
    expect(missedLeavings).toEqual([leaves]);
    expect(received()).toEqual([]);
  });

  test("is not reported if those who begin have read it, or if it was delivered", () => {
    const { order, leaving, two, missedLeavings } = testLeaving();
    order.open(CHAT);
    order.receive(two);
    order.begin(CHAT, 1);
    order.receive(leaving);
    order.close(CHAT);
    order.open(CHAT);
    order.begin(CHAT, 0);
    order.receive(leaving);
    order.receive(leaving);
    expect(missedLeavings).toEqual([]);
  });
});

describe("introductions", () => {
  const introduced = (changes: readonly EventChange[]) =>
    changes.flatMap(({ to, at }) => ("users" in to ? [[...to.users, at?.seq]] : []));

  test("newcomers are introduced immediately to a conversation that nobody here follows", () => {
    const { order, delivered, changeLog } = testSequencer();
    const [, introduction] = changeLog.commitJoin(CHAT, "carol");
    order.receive(asEvent(introduction));
    expect(introduced(delivered)).toEqual([["carol", 1]]);
  });

  test("newcomers are introduced after all earlier events are delivered", () => {
    const { order, delivered, follow, commit, changeLog } = testSequencer({ gapGraceMs: NEVER_MS });
    follow();
    const one = commit("one");
    const [changed, introduction] = changeLog.commitJoin(CHAT, "carol").map(asEvent) as [
      EventChange,
      EventChange,
    ];
    order.receive(changed);
    order.receive(introduction);
    expect(delivered).toEqual([]);
    order.receive(one);
    expect(delivered).toEqual([one, changed, introduction]);
  });

  test("newcomers whose introduction arrives late receive the current conversation", async () => {
    const { order, delivered, received, follow, commit, changeLog } = testSequencer();
    follow();
    const [changed, introduction] = changeLog.commitJoin(CHAT, "carol").map(asEvent) as [
      EventChange,
      EventChange,
    ];
    order.receive(changed);
    order.receive(commit("two"));
    order.receive(introduction);
    await until(() => introduced(delivered).length > 0, "carol is introduced");
    expect(introduced(delivered)).toEqual([["carol", 2]]);
    order.receive(commit("three"));
    expect(received()).toEqual(["conversationUpdated", "two", "conversationNew", "three"]);
  });

  test("newcomers who have left since are not introduced", async () => {
    const { order, delivered, received, follow, commit, changeLog } = testSequencer();
    follow();
    const [changed, introduction] = changeLog.commitJoin(CHAT, "carol").map(asEvent) as [
      EventChange,
      EventChange,
    ];
    order.receive(changed);
    order.receive(asEvent(changeLog.commitLeave(CHAT, "carol")));
    order.receive(introduction);
    order.receive(commit("three"));
    await until(() => received().includes("three"), "the next event");
    expect(introduced(delivered)).toEqual([]);
  });

  test("newcomers whose introduction was lost are introduced by `introduce`", async () => {
    for (const followed of [true, false]) {
      const { order, delivered, follow, commit, changeLog } = testSequencer();
      if (followed) follow();
      changeLog.commitJoin(CHAT, "carol");
      commit("two");
      await order.introduce(CHAT, ["carol"]);
      await until(() => introduced(delivered).length > 0, "carol is introduced");
      expect(introduced(delivered)).toEqual([["carol", 2]]);
    }
  });

  test("newcomers are introduced although the conversation closed or was lost meanwhile", async () => {
    for (const isClosed of [true, false]) {
      const read = Promise.withResolvers<void>();
      const { order, delivered, follow, commit, changeLog, lost } = testSequencer({
        maxHeld: 2,
        readConversation: async (...query) => {
          await read.promise;
          return changeLog.readConversation(...query);
        },
      });
      follow();
      order.receive(asEvent(changeLog.commitJoin(CHAT, "carol")[0]));
      const introducing = order.introduce(CHAT, ["carol"]);
      for (let count = 0; count < 3; count++) order.receive(commit(`${count}`));
      expect(lost).toEqual([CHAT]);
      if (isClosed) order.close(CHAT);
      read.resolve();
      await introducing;
      expect(introduced(delivered)).toEqual([["carol", 4]]);
    }
  });

  test("newcomers whose introduction was lost and who have left are not introduced", async () => {
    const { order, delivered, changeLog } = testSequencer();
    changeLog.commitJoin(CHAT, "carol");
    changeLog.commitLeave(CHAT, "carol");
    await order.introduce(CHAT, ["carol"]);
    expect(introduced(delivered)).toEqual([]);
  });
});

test("uncounted events for accounts are delivered immediately", () => {
  const { order, delivered, follow } = testSequencer({ gapGraceMs: NEVER_MS });
  follow();
  const change = event({
    frame: { method: "events.accountUpdated", params: human("alice") },
    to: { users: ["alice"] },
  });
  order.receive(change);
  expect(delivered).toEqual([change]);
});

test("each event is delivered once and in order when events are lost, repeated and reordered", async () => {
  const trip = fc.array(fc.record({ at: fc.nat(30), copies: fc.nat(2) }), {
    minLength: 1,
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(trip, async (places) => {
      const { order, received, follow, commit, lost } = testSequencer({ gapGraceMs: 0 });
      follow();
      const changes = places.map((_, place) => commit(`${place}`));
      const arriving = changes
        .flatMap((change, place) => Array(places[place]?.copies ?? 0).fill(change) as EventChange[])
        .map((change, place) => ({ change, at: (places[place % places.length]?.at ?? 0) + place }))
        .toSorted((one, other) => one.at - other.at);
      for (const { change, at } of arriving) {
        order.receive(change);
        if (at % 3 === 0) await Bun.sleep(0);
      }
      order.begin(CHAT, changes.length);
      await until(() => received().length >= changes.length, "all events");
      expect(received()).toEqual(changes.map((_, place) => `${place}`));
      expect(lost).toEqual([]);
    }),
    { numRuns: 60 },
  );
});
