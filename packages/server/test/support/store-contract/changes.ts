import { expect } from "bun:test";
import { durable, messageDelta } from "../../../src/changes/change.ts";
import type { LogEntry, LogLimits } from "../../../src/store/changes.ts";
import type { Store } from "../../../src/store/store.ts";
import {
  at,
  type Chat,
  type Check,
  emitMarker,
  type Fixture,
  failed,
  failUnit,
  inSequence,
  newAccount,
  nextTick,
  send,
  times,
} from "./fixture.ts";

/** All entries after a cursor, read in pages. */
export async function readLog(store: Store, after = 0, limit = 100): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for (;;) {
    const page = await store.changes.read(entries.at(-1)?.cursor ?? after, limit);
    if (!page) throw new Error("entries were pruned");
    if (page.length === 0) return entries;
    entries.push(...page);
  }
}

const changesIn = (entries: readonly LogEntry[]) => entries.flatMap(({ changes }) => changes);

/** The ends of sessions that the log has. */
export const endsIn = (entries: readonly LogEntry[]) =>
  changesIn(entries).flatMap((change) =>
    change.kind === "session_ended" ? [change.session_id] : [],
  );

/** The counter values of a conversation's events in the log. */
const seqsIn = (entries: readonly LogEntry[], { uuid }: Chat) =>
  changesIn(entries).flatMap((change) =>
    change.kind === "event" && change.at?.conversation_id === uuid ? [change.at.seq] : [],
  );

export function changes(check: Check) {
  check("a node's own entries come without their changes if it asks so", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const head = await fixture.store.changes.head();
    await fixture.send(chat, alice, "a");
    const [entry] = (await fixture.store.changes.read(head, 1)) ?? [];
    expect(entry?.changes).toHaveLength(1);
    const [own] = (await fixture.store.changes.read(head, 1, entry?.node)) ?? [];
    expect(own).toEqual({ cursor: head + 1, node: entry?.node ?? "", changes: [] });
    expect(await fixture.store.changes.read(head, 1, "another")).toEqual(entry ? [entry] : []);
  });

  check("entries are in commit order under concurrent units", async (fixture) => {
    const people = await fixture.people("alice", "bob", "carol");
    const chats = await inSequence(people, () => fixture.group(...people));
    const head = await fixture.store.changes.head();
    await Promise.all(
      times(300).map((n) =>
        fixture.store
          .write(async (tx) => {
            await send(tx, at(chats, n), at(people, n >> 2), `${n}`);
            if (n % 11 === 0) failUnit();
          })
          .catch(() => null),
      ),
    );
    const entries = await readLog(fixture.store, head, 7);
    const cursors = entries.map(({ cursor }) => cursor);
    expect(cursors).toEqual(cursors.toSorted((one, other) => one - other));
    expect(cursors.at(-1)).toBe(await fixture.store.changes.head());
    for (const chat of chats) {
      const { seq } = (await fixture.view(chat, at(people, 0))) ?? { seq: 0 };
      expect(seqsIn(entries, chat)).toEqual(times(seq).map((n) => n + 1));
    }
  });

  check(
    "changes of one unit stay together, in the order in which it made them",
    async (fixture) => {
      await Promise.all(
        times(40).map((n) =>
          fixture.store.write(async (tx) => {
            emitMarker(tx, `${n} begins`);
            await newAccount(tx, { username: `user${n}` });
            emitMarker(tx, `${n} ends`);
          }),
        ),
      );
      const ends = endsIn(await readLog(fixture.store));
      expect(ends).toHaveLength(80);
      for (const n of times(40))
        expect(ends.indexOf(`${n} ends`)).toBe(ends.indexOf(`${n} begins`) + 1);
    },
  );

  check("a unit that rolls back leaves no entry", async ({ store }) => {
    const outcomes = await Promise.all(
      times(20).map((n) =>
        failed(
          store.write(async (tx) => {
            await newAccount(tx, { username: `user${n}` });
            emitMarker(tx, `${n}`);
            if (n % 2 === 0) failUnit();
          }),
        ),
      ),
    );
    expect(outcomes.filter(Boolean)).toHaveLength(10);
    const odd = times(20).filter((n) => n % 2 === 1);
    expect(endsIn(await readLog(store)).toSorted()).toEqual(odd.map(String).toSorted());
  });

  check("an entry exists exactly when the write is visible", async ({ store }) => {
    const accountOf = (username: string) => store.read((tx) => tx.account(username));
    const writes = times(100).map((n) =>
      store.write(async (tx) => {
        await newAccount(tx, { username: `user${n}` });
        emitMarker(tx, `user${n}`);
      }),
    );
    let seen: string[] = [];
    while (seen.length < 100) {
      await nextTick();
      seen = endsIn(await readLog(store));
      for (const username of seen) expect(await accountOf(username)).not.toBeNull();
    }
    await Promise.all(writes);
    expect(await accountOf("user100")).toBeNull();
    await store.write(async (tx) => {
      await newAccount(tx, { username: "user100" });
      emitMarker(tx, "user100");
    });
    expect(endsIn(await readLog(store))).toContain("user100");
  });

  check("transient changes and units that emit nothing are not logged", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const head = await fixture.store.changes.head();
    await fixture.store.write((tx) => tx.signal(messageDelta("m", chat.uuid, "text", 4)));
    await fixture.store.note((tx) => tx.signal(messageDelta("m", chat.uuid, "more", 8)));
    await fixture.store.write(() => {});
    expect(await fixture.store.changes.head()).toBe(head);
    expect(await readLog(fixture.store, head)).toEqual([]);
    await fixture.store.note((tx) => emitMarker(tx, "noted"));
    expect(endsIn(await readLog(fixture.store, head))).toEqual(["noted"]);
  });

  check(
    "an event that shows a message is stored as a reference, without its text",
    async (fixture) => {
      const [alice, bob] = await fixture.people("alice", "bob");
      const chat = await fixture.group(alice, bob);
      const message = await fixture.send(chat, alice, "zqsecretword");
      const [stored] = (await fixture.storedEntries()).slice(-1);
      expect(stored).not.toContain("zqsecretword");
      expect(changesIn(await readLog(fixture.store)).at(-1)).toEqual({
        kind: "event",
        name: "events.messageNew",
        delivery: "counted",
        to: { conversation: chat.uuid },
        at: { conversation_id: chat.uuid, seq: message.seq },
        shows: message.id,
      });
    },
  );

  check("other events are stored whole", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    const hidden = durable(
      {
        method: "events.messageDeleted",
        params: { conversation_id: chat.uuid, ids: [Bun.randomUUIDv7()] },
      },
      { users: ["alice"] },
      { exceptSocket: "7" },
    );
    const ended = { kind: "turns_ended", turns: [{ id: 1, node: null }] } as const;
    await fixture.store.write((tx) => {
      tx.emit(hidden);
      tx.emit({ kind: "turns_queued" });
      tx.emit(ended);
    });
    expect(changesIn(await readLog(fixture.store))).toEqual([
      hidden,
      { kind: "turns_queued" },
      ended,
    ]);
  });

  check("entries are read in pages, and a reader at the head gets none", async ({ store }) => {
    for (const n of times(7)) await store.write((tx) => emitMarker(tx, `${n}`));
    const head = await store.changes.head();
    const first = (await store.changes.read(0, 3)) ?? [];
    expect(endsIn(first)).toEqual(["0", "1", "2"]);
    const rest = (await store.changes.read(first.at(-1)?.cursor ?? 0, 100)) ?? [];
    expect(endsIn(rest)).toEqual(["3", "4", "5", "6"]);
    expect(rest.at(-1)?.cursor).toBe(head);
    expect(await store.changes.read(head, 100)).toEqual([]);
  });

  check("the log survives reopening, and its cursors keep rising", async (fixture) => {
    await fixture.store.write((tx) => emitMarker(tx, "before"));
    const head = await fixture.store.changes.head();
    const reopened = await fixture.reopen();
    expect(await reopened.changes.head()).toBe(head);
    await reopened.write((tx) => emitMarker(tx, "after"));
    expect(endsIn(await readLog(reopened))).toEqual(["before", "after"]);
    expect(endsIn(await readLog(reopened, head))).toEqual(["after"]);
  });

  /** Writes ten entries, and reopens the store with limits until the first is pruned. */
  async function pruned(fixture: Fixture, limits: Partial<LogLimits>) {
    for (const n of times(10)) await fixture.store.write((tx) => emitMarker(tx, `${n}`));
    const first = (await fixture.store.changes.read(0, 1))?.[0]?.cursor ?? 0;
    const head = await fixture.store.changes.head();
    const store = await fixture.reopen({ ...limits, pruneEveryMs: 1 });
    while ((await store.changes.read(0, 1)) !== null) await Bun.sleep(1);
    return { store, first, head };
  }

  check(
    "entries beyond the limit are pruned, and a cursor before them is told so",
    async (fixture) => {
      const { store, first, head } = await pruned(fixture, { maxEntries: 4 });
      expect(await store.changes.read(first, 100)).toBeNull();
      expect(endsIn(await readLog(store, head - 4))).toEqual(["6", "7", "8", "9"]);
      expect(endsIn(await readLog(store, head - 1))).toEqual(["9"]);
      expect(await store.changes.head()).toBe(head);
      await store.write((tx) => emitMarker(tx, "after"));
      expect(endsIn(await readLog(store, head))).toEqual(["after"]);
    },
  );

  check("the log is limited in bytes", async (fixture) => {
    await fixture.store.write((tx) => emitMarker(tx, "-"));
    const [entry = ""] = await fixture.storedEntries();
    const { store, head } = await pruned(fixture, { maxBytes: 4 * entry.length });
    expect(endsIn(await readLog(store, head - 2))).toEqual(["8", "9"]);
    expect((await fixture.storedEntries()).length).toBeLessThanOrEqual(4);
  });

  check(
    "old entries are pruned, but for the newest, so that cursors keep rising",
    async (fixture) => {
      const { store, head } = await pruned(fixture, { keptMs: -1000 });
      expect(await store.changes.head()).toBe(head);
      expect(endsIn(await readLog(store, head - 1))).toEqual(["9"]);
      await store.write((tx) => emitMarker(tx, "after"));
      expect(await store.changes.head()).toBe(head + 1);
      expect((await fixture.storedEntries()).length).toBeLessThanOrEqual(2);
    },
  );

  check("a subscription keeps its cursor, and its name belongs to one node", async (fixture) => {
    const claim = (node: string, from: number, leaseMs = 60_000) =>
      fixture.store.write((tx) => tx.claimSubscription("audit", node, leaseMs, from));
    const save = (node: string, cursor: number, leaseMs = 60_000) =>
      fixture.store.write((tx) => tx.saveSubscription("audit", node, cursor, leaseMs));
    expect(await save("one", 1)).toBe(false);
    expect(await claim("one", 5)).toBe(5);
    expect(await claim("two", 9)).toBeNull();
    expect(await save("two", 9)).toBe(false);
    expect(await save("one", 7)).toBe(true);
    expect(await claim("one", 0)).toBe(7);
    expect(await save("one", 8, 0)).toBe(true);
    expect(await claim("two", 0)).toBe(8);
    expect(await save("one", 9)).toBe(false);
    const reopened = await fixture.reopen();
    expect(
      await reopened.write((tx) => tx.claimSubscription("audit", "three", 60_000, 0)),
    ).toBeNull();
    expect(await reopened.write((tx) => tx.claimSubscription("audit", "two", 60_000, 0))).toBe(8);
  });

  check("an expired lease can be taken over", async ({ store }) => {
    const claim = (node: string, leaseMs: number) =>
      store.write((tx) => tx.claimSubscription("push", node, leaseMs, 3));
    expect(await claim("one", 1)).toBe(3);
    let taken: number | null = null;
    while (taken === null) taken = await claim("two", 60_000);
    expect(taken).toBe(3);
    expect(await store.write((tx) => tx.saveSubscription("push", "one", 4, 60_000))).toBe(false);
    expect(await claim("one", 60_000)).toBeNull();
  });

  check(
    "a subscription that is behind is moved forward, and keeps its lease",
    async ({ store }) => {
      const claim = (node: string) =>
        store.write((tx) => tx.claimSubscription("push", node, 60_000, 1));
      const advance = (to: number) => store.write((tx) => tx.advanceSubscription("push", to));
      await advance(3);
      expect(await claim("one")).toBe(3);
      await advance(5);
      await advance(4);
      expect(await claim("two")).toBeNull();
      expect(await claim("one")).toBe(5);
    },
  );

  check(
    "subscriptions are independent, and one that its node has deleted begins anew",
    async ({ store }) => {
      const claim = (name: string, from: number) =>
        store.write((tx) => tx.claimSubscription(name, "one", 60_000, from));
      expect(await claim("audit", 1)).toBe(1);
      expect(await claim("push", 2)).toBe(2);
      await store.write((tx) => tx.deleteSubscription("audit", "two"));
      expect(await store.write((tx) => tx.saveSubscription("audit", "one", 3, 60_000))).toBe(true);
      await store.write((tx) => tx.deleteSubscription("audit", "one"));
      expect(await store.write((tx) => tx.saveSubscription("audit", "one", 4, 60_000))).toBe(false);
      expect(await claim("audit", 6)).toBe(6);
      expect(await claim("push", 6)).toBe(2);
    },
  );
}
