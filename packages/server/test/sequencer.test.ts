import { afterEach, describe, expect, test } from "bun:test";
import { until } from "@parley/testkit/until.ts";
import fc from "fast-check";
import pino from "pino";
import type { Change, EventChange } from "../src/changes/change.ts";
import { Sequencer, type SequencerOptions } from "../src/realtime/sequencer.ts";
import { human } from "./support/broker.ts";
import { event } from "./support/changes.ts";
import { Ledger, texts } from "./support/ledger.ts";

const ROOM = "0190f000-0000-7000-8000-000000000001";
const log = pino({ level: "silent" });
/** Longer than any test: what is seen does not come from having waited. */
const NEVER_MS = 3_600_000;

const made: Sequencer[] = [];
afterEach(() => {
  for (const each of made.splice(0)) each.stop();
});

function world(options: Partial<SequencerOptions> = {}) {
  const ledger = new Ledger();
  ledger.open(ROOM, "alice", "bob");
  const delivered: EventChange[] = [];
  const lost: string[] = [];
  const order = new Sequencer({
    log,
    deliver: (change) => delivered.push(change),
    readLog: async () => {
      for (const { changes } of (await ledger.read(0)) ?? []) {
        for (const change of changes) {
          const { at } = change as EventChange;
          if (at && order.isMissing(at.conversation_id, at.seq))
            order.receive(change as EventChange);
        }
      }
    },
    readConversation: ledger.readConversation,
    lost: (conversation) => lost.push(conversation),
    gapGraceMs: 1,
    retryMs: 1,
    ...options,
  });
  made.push(order);
  const heard = () => texts(delivered.map(({ data }) => JSON.parse(data)));
  const follow = (seq = 0) => {
    order.open(ROOM);
    order.begin(ROOM, seq);
  };
  const say = (text: string) => asEvent(ledger.say(ROOM, text));
  return { ledger, delivered, lost, order, heard, follow, say };
}

function asEvent(change: Change | undefined): EventChange {
  if (change?.kind !== "event") throw new Error("not an event");
  return change;
}

/** Something that is not counted, such as typing. */
const passing = (text: string): EventChange =>
  event({
    frame: { method: "events.messageDeleted", params: { conversation_id: ROOM, ids: [text] } },
    to: { conversation: ROOM },
  });

describe("in order", () => {
  test("each event is delivered at once, and once", () => {
    const { order, heard, follow, say, ledger } = world({ gapGraceMs: NEVER_MS });
    follow();
    const [one, two, three] = [say("one"), say("two"), say("three")];
    for (const packet of [one, two, one, two, three, three]) order.receive(packet);
    expect(heard()).toEqual(["one", "two", "three"]);
    expect(ledger.reads).toBe(0);
  });

  test("what is not counted is delivered at its turn", () => {
    const { order, heard, follow, say } = world({ gapGraceMs: NEVER_MS });
    follow();
    const [one, two] = [say("one"), say("two")];
    for (const packet of [one, passing("typing"), two]) order.receive(packet);
    expect(heard()).toEqual(["one", "typing", "two"]);
  });

  test("conversations do not wait for each other", () => {
    const { order, heard, follow, say, ledger } = world({ gapGraceMs: NEVER_MS });
    const other = "0190f000-0000-7000-8000-000000000002";
    ledger.open(other, "alice");
    follow();
    order.open(other);
    order.begin(other, 0);
    say("lost");
    order.receive(say("held back"));
    order.receive(asEvent(ledger.say(other, "elsewhere")));
    expect(heard()).toEqual(["elsewhere"]);
  });

  test("a conversation that nobody here follows is let go by", () => {
    const { order, heard, say } = world();
    order.receive(say("one"));
    order.receive(passing("typing"));
    expect(heard()).toEqual([]);
  });
});

describe("a gap", () => {
  test("that closes by itself needs no reading", () => {
    const { order, heard, follow, say, ledger } = world({ gapGraceMs: NEVER_MS });
    follow();
    const [one, two, three, four] = [say("one"), say("two"), say("three"), say("four")];
    order.receive(four);
    order.receive(passing("typing"));
    order.receive(two);
    order.receive(three);
    expect(heard()).toEqual([]);
    order.receive(one);
    expect(heard()).toEqual(["one", "two", "three", "four", "typing"]);
    expect(ledger.reads).toBe(0);
  });

  test("holds back everything until the log has said what is missing", async () => {
    const { order, heard, follow, say, ledger } = world();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    ledger.gate = promise;
    follow();
    say("lost");
    order.receive(say("two"));
    order.receive(passing("typing"));
    await until(() => ledger.reads > 0, "the log was asked");
    order.receive(say("three"));
    order.receive(passing("typing more"));
    expect(heard()).toEqual([]);
    answer();
    await until(() => heard().length === 5, "all of it");
    expect(heard()).toEqual(["lost", "two", "typing", "three", "typing more"]);
  });

  test("that the store alone knows of is filled", async () => {
    const { order, heard, follow, say, lost } = world();
    follow();
    say("one");
    say("two");
    order.begin(ROOM, 2);
    await until(() => heard().length === 2, "both");
    expect(heard()).toEqual(["one", "two"]);
    expect(lost).toEqual([]);
  });

  test("is filled once the log can be read again", async () => {
    const { order, heard, follow, say, ledger } = world();
    follow();
    say("lost");
    ledger.broken = true;
    order.receive(say("two"));
    await until(() => ledger.reads > 2, "several tries");
    expect(heard()).toEqual([]);
    ledger.broken = false;
    await until(() => heard().length === 2, "both");
    expect(heard()).toEqual(["lost", "two"]);
  });

  test("with more behind it than can be held is given up", () => {
    const { order, heard, follow, say, lost } = world({ maxHeld: 10, gapGraceMs: NEVER_MS });
    follow();
    say("lost");
    for (let count = 1; count < 12; count++) order.receive(say(`${count}`));
    expect(lost).toEqual([ROOM]);
    expect(heard()).toEqual([]);
  });

  test("that the log does not fill is given up, and nothing newer is delivered", async () => {
    const { order, heard, follow, say, ledger, lost } = world({ gapTimeoutMs: 5 });
    follow();
    say("lost");
    ledger.prune();
    order.receive(say("two"));
    await until(() => lost.length > 0, "it was given up");
    order.receive(say("three"));
    expect(lost).toEqual([ROOM]);
    expect(heard()).toEqual([]);

    order.begin(ROOM, 3);
    order.receive(say("four"));
    expect(heard()).toEqual(["four"]);
  });

  test("is of no interest once nobody follows the conversation", async () => {
    const { order, heard, follow, say, ledger } = world();
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    ledger.gate = promise;
    follow();
    say("lost");
    order.receive(say("two"));
    await until(() => ledger.reads > 0, "the log was asked");
    order.close(ROOM);
    answer();
    await Bun.sleep(0);
    expect(heard()).toEqual([]);
  });
});

describe("where it begins", () => {
  test("nothing is delivered before that is known, and nothing that came before it", () => {
    const { order, heard, say } = world({ gapGraceMs: NEVER_MS });
    order.open(ROOM);
    const [one, two] = [say("one"), say("two")];
    order.receive(one);
    order.receive(passing("typing"));
    order.receive(two);
    order.begin(ROOM, 1);
    order.receive(two);
    order.receive(say("three"));
    expect(heard()).toEqual(["three"]);
  });

  test("stays what it is for those who came first", () => {
    const { order, heard, follow, say } = world({ gapGraceMs: NEVER_MS });
    follow();
    const one = say("one");
    order.begin(ROOM, 1);
    order.receive(one);
    expect(heard()).toEqual(["one"]);
  });

  test("a value the store is known to have is caught up with", async () => {
    const { order, heard, follow, say } = world();
    follow();
    say("one");
    order.begin(ROOM, 1);
    await until(() => heard().length === 1, "the event");
    expect(heard()).toEqual(["one"]);
  });
});

describe("newcomers", () => {
  const told = (packets: readonly EventChange[]) =>
    packets.flatMap(({ to, at }) => ("users" in to ? [[...to.users, at?.seq]] : []));

  test("are told at once in a conversation that nobody here follows", () => {
    const { order, delivered, ledger } = world();
    const [, welcome] = ledger.join(ROOM, "carol");
    order.receive(asEvent(welcome));
    expect(told(delivered)).toEqual([["carol", 1]]);
  });

  test("are told when what came before has been delivered", () => {
    const { order, delivered, follow, say, ledger } = world({ gapGraceMs: NEVER_MS });
    follow();
    const one = say("one");
    const [changed, welcome] = ledger.join(ROOM, "carol").map(asEvent) as [
      EventChange,
      EventChange,
    ];
    order.receive(changed);
    order.receive(welcome);
    expect(delivered).toEqual([]);
    order.receive(one);
    expect(delivered).toEqual([one, changed, welcome]);
  });

  test("who are told late are told of the conversation as it is", async () => {
    const { order, delivered, heard, follow, say, ledger } = world();
    follow();
    const [changed, welcome] = ledger.join(ROOM, "carol").map(asEvent) as [
      EventChange,
      EventChange,
    ];
    order.receive(changed);
    order.receive(say("two"));
    order.receive(welcome);
    await until(() => told(delivered).length > 0, "carol was told");
    expect(told(delivered)).toEqual([["carol", 2]]);
    order.receive(say("three"));
    expect(heard()).toEqual(["conversationUpdated", "two", "conversationNew", "three"]);
  });

  test("who have left again meanwhile are not told", async () => {
    const { order, delivered, heard, follow, say, ledger } = world();
    follow();
    const [changed, welcome] = ledger.join(ROOM, "carol").map(asEvent) as [
      EventChange,
      EventChange,
    ];
    order.receive(changed);
    order.receive(asEvent(ledger.leave(ROOM, "carol")));
    order.receive(welcome);
    order.receive(say("three"));
    await until(() => heard().includes("three"), "what comes after");
    expect(told(delivered)).toEqual([]);
  });

  test("whose invitation was lost are told when that is found out", async () => {
    for (const followed of [true, false]) {
      const { order, delivered, follow, say, ledger } = world();
      if (followed) follow();
      ledger.join(ROOM, "carol");
      say("two");
      await order.introduce(ROOM, ["carol"]);
      await until(() => told(delivered).length > 0, "carol was told");
      expect(told(delivered)).toEqual([["carol", 2]]);
    }
  });

  test("whose invitation was lost and who have left are not told", async () => {
    const { order, delivered, ledger } = world();
    ledger.join(ROOM, "carol");
    ledger.leave(ROOM, "carol");
    await order.introduce(ROOM, ["carol"]);
    expect(told(delivered)).toEqual([]);
  });
});

test("private events that are not counted pass by", () => {
  const { order, delivered, follow } = world({ gapGraceMs: NEVER_MS });
  follow();
  const packet = event({
    frame: { method: "events.accountUpdated", params: human("alice") },
    to: { users: ["alice"] },
  });
  order.receive(packet);
  expect(delivered).toEqual([packet]);
});

test("however packets are lost, repeated and shuffled, each event is delivered once and in order", async () => {
  const trip = fc.array(fc.record({ at: fc.nat(30), copies: fc.nat(2) }), {
    minLength: 1,
    maxLength: 30,
  });
  await fc.assert(
    fc.asyncProperty(trip, async (places) => {
      const { order, heard, follow, say, lost } = world({ gapGraceMs: 0 });
      follow();
      const packets = places.map((_, place) => say(`${place}`));
      const arriving = packets
        .flatMap((packet, place) => Array(places[place]?.copies ?? 0).fill(packet) as EventChange[])
        .map((packet, place) => ({ packet, at: (places[place % places.length]?.at ?? 0) + place }))
        .toSorted((one, other) => one.at - other.at);
      for (const { packet, at } of arriving) {
        order.receive(packet);
        if (at % 3 === 0) await Bun.sleep(0);
      }
      order.begin(ROOM, packets.length);
      await until(() => heard().length >= packets.length, "all of them");
      expect(heard()).toEqual(packets.map((_, place) => `${place}`));
      expect(lost).toEqual([]);
    }),
    { numRuns: 60 },
  );
});
