import { expect } from "bun:test";
import type { Awaitable } from "../../../src/store/awaitable.ts";
import type { WriteTx } from "../../../src/store/store.ts";
import {
  type Chat,
  type Check,
  conversationOf,
  emitMarker,
  failed,
  failUnit,
  inSequence,
  newAccount,
  newGroup,
  nextTick,
  recordOf,
  START,
  send,
  times,
} from "./fixture.ts";

export function unitsOfWork(check: Check) {
  check("write and read resolve with the unit's result", async (fixture) => {
    expect(await fixture.store.write(() => 1)).toBe(1);
    expect(await fixture.store.write(async () => "later")).toBe("later");
    expect(await fixture.store.read(() => 2)).toBe(2);
  });

  check("write and read reject with the unit's error", async (fixture) => {
    const error = new Error("mine");
    const fail = () => {
      throw error;
    };
    const outcome = (work: Promise<unknown>) => work.catch((reason) => ({ reason }));
    expect(await outcome(fixture.store.write(fail))).toEqual({ reason: error });
    expect(await outcome(fixture.store.write(() => Promise.reject(error)))).toEqual({
      reason: error,
    });
    expect(await outcome(fixture.store.read(fail))).toEqual({ reason: error });
  });

  check("a unit that throws after writing changes nothing", async (fixture) => {
    const { store } = fixture;
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice);
    const message = await fixture.send(chat, alice, "first");
    const before = await fixture.view(chat, alice);
    const write = fixture.writeIn(chat, async (tx) => {
      await newAccount(tx, { username: "carol" });
      await tx.setDisplayName(alice.id, "Somebody else");
      await tx.insertMembers(chat.id, [bob.id], START);
      await send(tx, chat, alice, "second");
      await tx.editMessage(await recordOf(tx, message), "changed", [], START);
      await tx.addReaction(await recordOf(tx, message), { reactor: bob, emoji: "👍", at: START });
      await tx.hideMessages([await recordOf(tx, message)], alice.id);
      await newGroup(tx, [bob]);
      failUnit();
    });
    expect(await failed(write)).toBe(true);
    expect(await fixture.view(chat, alice)).toEqual(before);
    expect(await fixture.texts(chat, alice)).toEqual(["first"]);
    expect(await store.read((tx) => tx.account("carol"))).toBeNull();
    expect(await store.read((tx) => tx.counters(bob.id))).toEqual([]);
    expect(await fixture.find(alice, ["second"])).toEqual([]);
  });

  check("a unit that throws does not affect concurrent units", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const outcomes = await Promise.all(
      times(60).map((n) =>
        failed(
          fixture.store.write(async (tx) => {
            if (n % 5 === 1) failUnit();
            await send(tx, chat, alice, `${n}`);
            if (n % 5 === 3) failUnit();
          }),
        ),
      ),
    );
    const kept = times(60).filter((n) => n % 5 !== 1 && n % 5 !== 3);
    expect(outcomes).toEqual(times(60).map((n) => !kept.includes(n)));
    const texts = await fixture.texts(chat, alice);
    expect(texts.toSorted()).toEqual(kept.map(String).toSorted());
    expect((await fixture.view(chat, alice)).seq).toBe(kept.length);
  });

  check("a unit is not refused because of what a failed unit wrote", async ({ store }) => {
    const written = Promise.withResolvers<void>();
    const first = store.write(async (tx) => {
      await newAccount(tx, { username: "carol" });
      written.resolve();
      failUnit();
    });
    const second = store.write(async (tx) => {
      await written.promise;
      if (await tx.account("carol")) throw new Error("taken");
      return "free";
    });
    expect(await failed(first)).toBe(true);
    expect(await second).toBe("free");
  });

  check(
    "units that fail after writing do not keep others from being committed",
    async (fixture) => {
      const [alice] = await fixture.people("alice");
      const chat = await fixture.group(alice);
      let runs = 0;
      const failures: Promise<boolean>[] = [];
      const fail = () => {
        const unit = fixture.store.write(async (tx) => {
          await newAccount(tx, { username: `undone${failures.length}` });
          failUnit();
        });
        failures.push(failed(unit));
      };
      fail();
      await fixture.store.write(async (tx) => {
        // Another one that fails arrives each time that this unit runs.
        if (++runs < 20) fail();
        await send(tx, chat, alice, "kept");
      });
      expect(runs).toBeLessThan(4);
      expect(await Promise.all(failures)).not.toContain(false);
      expect(await fixture.texts(chat, alice)).toEqual(["kept"]);
    },
  );

  check("many units that fail after writing do not each cost others a run", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    let runs = 0;
    const kept = times(20).map((n) =>
      fixture.store.write(async (tx) => {
        runs++;
        await send(tx, chat, alice, `${n}`);
      }),
    );
    const undone = times(30).map(() =>
      fixture.store.write(async (tx) => {
        await send(tx, chat, alice, "undone");
        failUnit();
      }),
    );
    expect(await Promise.all(undone.map(failed))).not.toContain(false);
    await Promise.all(kept);
    // Two runs each, and more where a busy machine divides the batch.
    expect(runs).toBeLessThan((20 * 30) / 4);
    expect(await fixture.texts(chat, alice)).toHaveLength(20);
  });

  check("changes of a failed unit are not handed to subscribers", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const writes = times(20).map((n) =>
      fixture.store.write(async (tx) => {
        emitMarker(tx, `before ${n}`);
        if (n % 2) await send(tx, chat, alice, `${n}`);
        if (n % 4) failUnit();
      }),
    );
    await Promise.allSettled(writes);
    await fixture.store.write((tx) => emitMarker(tx, "last"));
    await fixture.received("last");
    const ended = times(20).filter((n) => n % 4 === 0);
    expect(fixture.changes).toEqual(
      [...ended.map((n) => `before ${n}`), "last"].map((session_id) => ({
        kind: "session_ended",
        session_id,
      })),
    );
  });

  check("a unit sees its own changes, and others see all of them or none", async ({ store }) => {
    const names = times(20).map((n) => `user${n}`);
    let done = false;
    const write = store
      .write((tx) =>
        inSequence(names, async (username) => {
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
      await nextTick();
    }
    await write;
    expect(seen.difference(new Set([0, 20]))).toEqual(new Set());
    expect(await store.read((tx) => tx.accounts(names))).toHaveLength(20);
  });

  check("reads see every unit whose write has resolved", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    for (const n of times(25)) {
      await fixture.send(chat, alice, `${n}`);
      const { seq, unread_count, last_message } = await fixture.view(chat, bob);
      expect([seq, unread_count, last_message?.content]).toEqual([n + 1, n + 1, `${n}`]);
    }
  });

  check("a unit changes only conversations that it owns", async (fixture) => {
    const { store } = fixture;
    const [alice, bob] = await fixture.people("alice", "bob");
    const [chat, another] = [await fixture.group(alice), await fixture.group(alice)];
    const { id: message } = await fixture.send(chat, alice, "hello");
    const errorOf = (unit: (tx: WriteTx) => Awaitable<unknown>) =>
      store.write(unit).then(
        () => null,
        ({ message: why }: Error) => why,
      );
    const titles = (...chats: Chat[]) =>
      store.write(async (tx) => {
        await conversationOf(tx, chat);
        for (const { id } of chats) await tx.setTitle(id, "new");
      });
    expect(await errorOf((tx) => tx.setTitle(chat.id, "new"))).toBe(
      `the unit does not own conversation ${chat.id}, which it changes`,
    );
    expect(await titles(chat, another).catch(({ message: why }: Error) => why)).toBe(
      `the unit does not own conversation ${another.id}, which it changes`,
    );
    expect(await fixture.view(chat, alice)).toMatchObject({ title: null });
    const record = await store.read((tx) => tx.message(message));
    expect(await errorOf((tx) => tx.hideMessages(record ? [record] : [], alice.id))).toBe(
      `the unit does not own conversation ${chat.id}, which it changes`,
    );
    await titles(chat);
    expect(await fixture.view(chat, alice)).toMatchObject({ title: "new" });
    // What a unit inserts is its own.
    await store.write(async (tx) => {
      const made = await newGroup(tx, [alice]);
      await tx.insertMembers(made.id, [bob.id], START);
    });
  });

  check("a unit that changes a conversation without owning it fails", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const leaving = fixture.store.write((tx) => tx.leaveForGood(chat.id, alice.id, START));
    expect(await leaving.catch((error: Error) => error.message)).toBe(
      `the unit does not own conversation ${chat.id}, which it changes`,
    );
    expect(await fixture.store.read((tx) => tx.goneForGood(chat.id, [alice.id]))).toEqual([]);
  });

  check("an open store is ready", async (fixture) => {
    await fixture.store.ready();
  });
}
