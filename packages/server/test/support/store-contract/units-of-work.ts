import { expect } from "bun:test";
import {
  type Check,
  failed,
  inTurn,
  newAccount,
  newGroup,
  nextTurn,
  recordOf,
  START,
  send,
  spoil,
  tellEnd,
  times,
} from "./world.ts";

export function unitsOfWork(check: Check) {
  check("a unit's result is what write and read resolve with", async (world) => {
    expect(await world.store.write(() => 1)).toBe(1);
    expect(await world.store.write(async () => "later")).toBe("later");
    expect(await world.store.read(() => 2)).toBe(2);
  });

  check("what a unit throws is what write and read reject with", async (world) => {
    const error = new Error("mine");
    const fail = () => {
      throw error;
    };
    const outcome = (work: Promise<unknown>) => work.catch((reason) => ({ reason }));
    expect(await outcome(world.store.write(fail))).toEqual({ reason: error });
    expect(await outcome(world.store.write(() => Promise.reject(error)))).toEqual({
      reason: error,
    });
    expect(await outcome(world.store.read(fail))).toEqual({ reason: error });
  });

  check("a unit that throws after writing leaves nothing behind", async (world) => {
    const { store } = world;
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice);
    const message = await world.send(room, alice, "first");
    const before = await world.view(room, alice);
    const write = store.write(async (tx) => {
      await newAccount(tx, { username: "carol" });
      await tx.setDisplayName(alice.id, "Somebody else");
      await tx.insertMembers(room.id, [bob.id], START);
      await send(tx, room, alice, "second");
      await tx.editMessage(await recordOf(tx, message), "changed", [], START);
      await tx.addReaction(await recordOf(tx, message), { reactor: bob, emoji: "👍", at: START });
      await tx.hideMessages([await recordOf(tx, message)], alice.id);
      await newGroup(tx, [bob]);
      spoil();
    });
    expect(await failed(write)).toBe(true);
    expect(await world.view(room, alice)).toEqual(before);
    expect(await world.texts(room, alice)).toEqual(["first"]);
    expect(await store.read((tx) => tx.account("carol"))).toBeNull();
    expect(await store.read((tx) => tx.counters(bob.id))).toEqual([]);
    expect(await world.find(alice, ["second"])).toEqual([]);
  });

  check("a unit that throws does not disturb those that run beside it", async (world) => {
    const [alice] = await world.people("alice");
    const room = await world.group(alice);
    const outcomes = await Promise.all(
      times(60).map((n) =>
        failed(
          world.store.write(async (tx) => {
            if (n % 5 === 1) spoil();
            await send(tx, room, alice, `${n}`);
            if (n % 5 === 3) spoil();
          }),
        ),
      ),
    );
    const kept = times(60).filter((n) => n % 5 !== 1 && n % 5 !== 3);
    expect(outcomes).toEqual(times(60).map((n) => !kept.includes(n)));
    const texts = await world.texts(room, alice);
    expect(texts.toSorted()).toEqual(kept.map(String).toSorted());
    expect((await world.view(room, alice)).seq).toBe(kept.length);
  });

  check("what a failed unit announced is never handed on", async (world) => {
    const [alice] = await world.people("alice");
    const room = await world.group(alice);
    const writes = times(20).map((n) =>
      world.store.write(async (tx) => {
        tellEnd(tx, `before ${n}`);
        if (n % 2) await send(tx, room, alice, `${n}`);
        if (n % 4) spoil();
      }),
    );
    await Promise.allSettled(writes);
    await world.store.write((tx) => tellEnd(tx, "last"));
    await world.heard("last");
    const ended = times(20).filter((n) => n % 4 === 0);
    expect(world.announced).toEqual(
      [...ended.map((n) => `before ${n}`), "last"].map((session_id) => ({
        kind: "session_ended",
        session_id,
      })),
    );
  });

  check("a unit sees its own changes, and nobody ever sees half of them", async ({ store }) => {
    const names = times(20).map((n) => `user${n}`);
    let done = false;
    const write = store
      .write((tx) =>
        inTurn(names, async (username) => {
          await newAccount(tx, { username });
          expect(await tx.account(username)).not.toBeNull();
        }),
      )
      .finally(() => {
        done = true;
      });
    const seen = new Set<number>();
    while (!done) {
      seen.add((await store.read((tx) => tx.accounts(names))).length);
      await nextTurn();
    }
    await write;
    expect(seen.difference(new Set([0, 20]))).toEqual(new Set());
    expect(await store.read((tx) => tx.accounts(names))).toHaveLength(20);
  });

  check("reads see every unit whose write has resolved", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    for (const n of times(25)) {
      await world.send(room, alice, `${n}`);
      const { seq, unread_count, last_message } = await world.view(room, bob);
      expect([seq, unread_count, last_message?.content]).toEqual([n + 1, n + 1, `${n}`]);
    }
  });

  check("a store that is open is ready", async (world) => {
    await world.store.ready();
  });
}
