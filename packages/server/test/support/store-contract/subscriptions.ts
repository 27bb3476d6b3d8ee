import { expect } from "bun:test";
import { until } from "@parley/testkit/until.ts";
import pino from "pino";
import { createMemoryBus } from "../../../src/changes/bus-memory.ts";
import { type Change, counted, frameOf, messageChanged } from "../../../src/changes/change.ts";
import { alone } from "../../../src/changes/cluster.ts";
import type { Cursor, LogEntry } from "../../../src/changes/log.ts";
import { replayable } from "../../../src/changes/replay.ts";
import { openChangeStream } from "../../../src/changes/stream.ts";
import { type ChangeHandler, createSubscription } from "../../../src/changes/subscription.ts";
import { publicAccount } from "../../../src/rules/accounts.ts";
import type { Store, WriteTx } from "../../../src/store/store.ts";
import { type Check, NOBODY, recordOf, START, send } from "./fixture.ts";

const log = pino({ level: "silent" });
const START_TIME = new Date(START).toISOString();

interface Options {
  name?: string;
  node?: string;
  from?: Cursor | "now";
  leaseMs?: number;
  pollMs?: number;
  before?: ChangeHandler<WriteTx>;
}

/** An audit trail of what messages were written and deleted. */
function newTrail(store: Store, before?: ChangeHandler<WriteTx>) {
  const lines: string[] = [];
  const handler: ChangeHandler<WriteTx> = async (entries) => {
    await before?.(entries);
    lines.push(...(await replayed(store, entries)).flatMap(lineOf));
  };
  const has = (...expected: string[]) =>
    until(() => lines.length >= expected.length, expected.join(", ")).then(() =>
      expect(lines).toEqual(expected),
    );
  return { lines, handler, has };
}

/** The changes with the current text of their messages. */
const replayed = (store: Store, entries: readonly LogEntry[]) =>
  store.read((tx) =>
    replayable(
      tx,
      entries.flatMap(({ changes }) => changes),
    ),
  );

/** A small subscriber, which polls often. */
function audit(store: Store, options: Options = {}) {
  const { name = "audit", node = "one", from = 0, leaseMs = 10_000, pollMs = 5, before } = options;
  const { lines, handler, has } = newTrail(store, before);
  const started = createSubscription({ name, from, handler, store, node, log, leaseMs, pollMs });
  return { lines, has, wake: () => started.wake(), stop: () => started.stop() };
}

function lineOf(change: Change): string[] {
  if (change.kind !== "event") return [];
  const frame = frameOf(change);
  if (frame.method === "events.messageNew") return [`new ${frame.params.content}`];
  if (frame.method === "events.messageDeleted") return [`deleted ${frame.params.ids.length}`];
  return [];
}

/** As if a unit was committed every millisecond for a while. */
async function wakeOften({ wake }: { wake(): void }): Promise<void> {
  for (let count = 0; count < 50; count++) {
    wake();
    await Bun.sleep(1);
  }
}

export function subscriptions(check: Check): void {
  check("a subscriber receives every change in commit order", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const trail = audit(store);
    const sent = Array.from({ length: 30 }, (_, n) => `${n}`);
    for (const content of sent) await fixture.send(chat, alice, content);
    await trail.has(...sent.map((content) => `new ${content}`));
    await trail.stop();
  });

  check("one that starts again continues where it stopped", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const first = audit(store);
    await fixture.send(chat, alice, "a");
    await first.has("new a");
    await first.stop();
    await fixture.send(chat, alice, "b");
    const second = audit(store, { from: "now" });
    await fixture.send(chat, alice, "c");
    await second.has("new b", "new c");
    await second.stop();
  });

  check("one of the change stream misses nothing while its server restarts", async (fixture) => {
    /** The stream of a server with one subscriber. */
    const start = async (store: Store) => {
      const node = Bun.randomUUIDv7();
      const options = { bus: createMemoryBus(), cluster: alone, node, log, everyMs: 1000 };
      const stream = await openChangeStream({ store, ...options });
      const { handler, has } = newTrail(store);
      stream.subscribe("audit", { from: 0 }, handler);
      return { has, stop: () => stream.stop() };
    };
    const [alice] = await fixture.people("alice");
    const room = await fixture.group(alice);
    await fixture.send(room, alice, "before it subscribes");
    const first = await start(fixture.store);
    await fixture.send(room, alice, "while it runs");
    await first.has("new before it subscribes", "new while it runs");
    await first.stop();
    await fixture.send(room, alice, "while it is stopped");

    const store = await fixture.reopen();
    const second = await start(store);
    await store.write((tx) => send(tx, room, alice, "after the restart"));
    await second.has("new while it is stopped", "new after the restart");
    await second.stop();
  });

  check("a new one may begin with what happens from now on", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    await fixture.send(chat, alice, "before");
    const ready = Promise.withResolvers<void>();
    const trail = audit(store, { from: "now", before: () => ready.resolve() });
    // It has begun once it has seen something that is known to come after.
    const talking = setInterval(() => void fixture.send(chat, alice, "after"), 5);
    await ready.promise;
    clearInterval(talking);
    await until(() => trail.lines.length > 0, "the first change");
    expect(trail.lines).not.toContain("new before");
    await trail.stop();
  });

  check("subscribers do not depend on each other", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const broken = audit(store, {
      name: "broken",
      before: () => {
        throw new Error("the receiver is away");
      },
    });
    const trail = audit(store);
    await fixture.send(chat, alice, "a");
    await trail.has("new a");
    expect(broken.lines).toEqual([]);
    await Promise.all([broken.stop(), trail.stop()]);
  });

  check("what a handler could not handle comes again", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    let failures = 3;
    const trail = audit(store, {
      before: () => {
        if (failures-- > 0) throw new Error("try again");
      },
    });
    await fixture.send(chat, alice, "a");
    await trail.has("new a");
    await trail.stop();
  });

  check("what a handler stores takes effect with the position, or not at all", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const stored: string[] = [];
    const undone: boolean[] = [];
    const isOperator = () => store.read((tx) => tx.isOperator(alice.id));
    const handler: ChangeHandler<WriteTx> = async (entries) => {
      const lines = (await replayed(store, entries)).flatMap(lineOf);
      if (lines.includes("new a")) undone.push(!(await isOperator()));
      return {
        store: async (tx) => {
          await tx.addOperator(alice.id, START);
          if (undone.length === 1) throw new Error("the store is away");
        },
        stored: () => void stored.push(...lines),
      };
    };
    await fixture.send(chat, alice, "a");
    const options = { name: "stored", from: 0, handler, store, node: "one", log };
    const started = createSubscription({ ...options, pollMs: 5, batchMs: 1 });
    await until(() => stored.length > 0, "the first change");
    expect(await isOperator()).toBe(true);
    await fixture.send(chat, alice, "b");
    started.wake();
    await until(() => stored.length > 1, "the second change");
    expect(stored).toEqual(["new a", "new b"]);
    expect(undone).toEqual([true, true]);
    await started.stop();
  });

  check("commits do not shorten the pause after a failure", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    await fixture.send(await fixture.group(alice), alice, "a");
    let attempts = 0;
    const trail = audit(store, {
      pollMs: 60_000,
      before: () => {
        attempts++;
        throw new Error("try again");
      },
    });
    await until(() => attempts > 0, "the first attempt");
    await wakeOften(trail);
    expect(attempts).toBe(1);
    await trail.stop();
  });

  check("commits do not make a node claim what another one holds", async ({ store }) => {
    await store.write((tx) => tx.claimSubscription("audit", "one", 60_000, 0));
    let writes = 0;
    const write: Store["write"] = (unit) => {
      writes++;
      return store.write(unit);
    };
    const two = audit({ ...store, write }, { node: "two", pollMs: 60_000 });
    await until(() => writes > 0, "the first claim");
    await wakeOften(two);
    expect(writes).toBe(1);
    await two.stop();
  });

  check("one that begins now does so once the log can be read", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    let failures = 2;
    let heads = 0;
    const head = async () => {
      if (failures-- > 0) throw new Error("the database cannot be reached");
      const cursor = await store.changes.head();
      heads++;
      return cursor;
    };
    const trail = audit({ ...store, changes: { ...store.changes, head } }, { from: "now" });
    await until(() => heads > 0, "the log was read");
    await fixture.send(chat, alice, "a");
    await trail.has("new a");
    await trail.stop();
  });

  check("a node whose lease ran out handles nothing before it has it again", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    await fixture.send(await fixture.group(alice), alice, "a");
    let attempts = 0;
    let claims = 0;
    const isTakenOver = Promise.withResolvers<void>();
    const write: Store["write"] = (unit) => {
      claims++;
      return store.write(unit);
    };
    const one = audit(
      { ...store, write },
      {
        node: "one",
        leaseMs: 100,
        before: async () => {
          attempts++;
          await isTakenOver.promise;
          throw new Error("try again");
        },
      },
    );
    await until(() => attempts > 0, "the first attempt");
    const two = audit(store, { node: "two" });
    await two.has("new a");
    isTakenOver.resolve();
    await until(() => claims > 2, "the node has asked for the lease again, in vain");
    expect(attempts).toBe(1);
    await Promise.all([one.stop(), two.stop()]);
  });

  check("under one name one node works, and another takes over from it", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const one = audit(store, { node: "one" });
    await fixture.send(chat, alice, "a");
    await one.has("new a");
    const two = audit(store, { node: "two" });
    await fixture.send(chat, alice, "b");
    await one.has("new a", "new b");
    expect(two.lines).toEqual([]);
    await one.stop();
    await fixture.send(chat, alice, "c");
    await two.has("new c");
    await two.stop();
  });

  check(
    "another node takes over from one that hangs, once its lease has run out",
    async (fixture) => {
      const { store } = fixture;
      const [alice] = await fixture.people("alice");
      const chat = await fixture.group(alice);
      const hanging = Promise.withResolvers<void>();
      const one = audit(store, { node: "one", leaseMs: 20, before: () => hanging.promise });
      await fixture.send(chat, alice, "a");
      const two = audit(store, { node: "two", leaseMs: 20 });
      await two.has("new a");
      hanging.resolve();
      await Promise.all([one.stop(), two.stop()]);
    },
  );

  check("a message that was deleted meanwhile appears as its deletion", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const gone = await fixture.send(chat, alice, "secret");
    await fixture.send(chat, alice, "kept");
    if (gone) await fixture.remove(gone);
    const trail = audit(store);
    await trail.has("deleted 1", "new kept");
    await trail.stop();
  });

  check("a replayed event shows a message as it was, with its text as it is", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const sent = await fixture.send(chat, alice, "first");
    if (!sent) throw new Error("the message was not sent");
    const react = (emoji: string) =>
      store.write(async (tx) => {
        const seq = await tx.addReaction(await recordOf(tx, sent), {
          reactor: alice,
          emoji,
          at: 0,
        });
        const params = {
          message_id: sent.id,
          reactor: publicAccount(alice),
          emoji,
          created_at: START_TIME,
        };
        tx.emit(counted("events.reactionAdded", params, chat.uuid, seq));
      });
    const edit = (content: string) =>
      store.write(async (tx) => {
        const seq = await tx.editMessage(await recordOf(tx, sent), content, [], START);
        const [view] = await tx.messageViews([sent.id], NOBODY);
        if (view) tx.emit(messageChanged("events.messageEdited", view, seq));
      });
    await react("👍");
    await edit("second");
    await react("🎉");
    await edit("third");
    const shown: unknown[] = [];
    const record: ChangeHandler<WriteTx> = async (entries) => {
      const changes = await replayed(store, entries);
      for (const change of changes) {
        const frame = change.kind === "event" ? frameOf(change) : null;
        if (frame?.method !== "events.messageNew" && frame?.method !== "events.messageEdited")
          continue;
        const { version, content, reactions } = frame.params;
        shown.push([version, content, reactions.map(({ emoji }) => emoji)]);
      }
    };
    const trail = audit(store, { before: record });
    await until(() => shown.length === 3, "three events");
    expect(shown).toEqual([
      [1, "third", []],
      [3, "third", ["👍"]],
      [5, "third", ["👍", "🎉"]],
    ]);
    await trail.stop();
  });
}
