import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import {
  at,
  type Check,
  emitMarker,
  failUnit,
  inSequence,
  newAccount,
  send,
  seqsReceived,
  times,
  wholeHistory,
} from "./fixture.ts";

export function order(check: Check) {
  check(
    "counters have no gaps, and changes are in counter order, under hundreds of concurrent units",
    async (fixture) => {
      const people = await fixture.people("alice", "bob", "carol");
      const chats = await inSequence(people, () => fixture.group(...people));
      const sent = await Promise.all(
        times(400).map((n) =>
          fixture.store
            .write(async (tx) => {
              const message = await send(tx, at(chats, n), at(people, n >> 2), `${n}`);
              if (n % 11 === 0) failUnit();
              return message;
            })
            .catch(() => null),
        ),
      );
      await fixture.store.write((tx) => emitMarker(tx, "all"));
      await fixture.received("all");
      for (const chat of chats) {
        const mine = sent.filter((message) => message?.conversation_id === chat.uuid);
        const places = mine.map((message) => (message as Message).seq);
        const all = times(mine.length).map((n) => n + 1);
        expect(places.toSorted((one, other) => one - other)).toEqual(all);
        expect(seqsReceived(fixture.changes, chat)).toEqual(all);
        const shown = await fixture.store.read((tx) => wholeHistory(tx, chat, at(people, 0)));
        expect(shown.map(({ seq }) => seq)).toEqual(all);
      }
    },
  );

  check(
    "changes of one unit stay together, in the order in which it emitted them",
    async (fixture) => {
      await Promise.all(
        times(50).map((n) =>
          fixture.store.write(async (tx) => {
            emitMarker(tx, `${n} begins`);
            await newAccount(tx, { username: `user${n}` });
            emitMarker(tx, `${n} ends`);
          }),
        ),
      );
      await fixture.store.write((tx) => emitMarker(tx, "all"));
      await fixture.received("all");
      const told = fixture.changes.map((one) =>
        one.kind === "session_ended" ? one.session_id : "",
      );
      expect(told).toHaveLength(101);
      for (const n of times(50)) {
        expect(told.indexOf(`${n} ends`)).toBe(told.indexOf(`${n} begins`) + 1);
      }
    },
  );

  check("a change that was handed to subscribers can be read", async ({ store }) => {
    const found: Promise<unknown>[] = [];
    store.onCommit((announcements) => {
      for (const one of announcements) {
        if (one.kind === "session_ended")
          found.push(store.read((tx) => tx.account(one.session_id)));
      }
    });
    await Promise.all(
      times(50).map((n) =>
        store.write(async (tx) => {
          await newAccount(tx, { username: `user${n}` });
          emitMarker(tx, `user${n}`);
        }),
      ),
    );
    while (found.length < 50) await store.write(() => {});
    for (const account of await Promise.all(found)) expect(account).not.toBeNull();
  });
}
