import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import {
  at,
  type Check,
  inTurn,
  newAccount,
  placesHeard,
  send,
  spoil,
  tellEnd,
  times,
  wholeHistory,
} from "./world.ts";

export function order(check: Check) {
  check(
    "counters have no gaps, and announcements come in their order, under hundreds of units at once",
    async (world) => {
      const people = await world.people("alice", "bob", "carol");
      const rooms = await inTurn(people, () => world.group(...people));
      const sent = await Promise.all(
        times(400).map((n) =>
          world.store
            .write(async (tx) => {
              const message = await send(tx, at(rooms, n), at(people, n >> 2), `${n}`);
              if (n % 11 === 0) spoil();
              return message;
            })
            .catch(() => null),
        ),
      );
      await world.store.write((tx) => tellEnd(tx, "all"));
      await world.heard("all");
      for (const room of rooms) {
        const mine = sent.filter((message) => message?.conversation_id === room.uuid);
        const places = mine.map((message) => (message as Message).seq);
        const all = times(mine.length).map((n) => n + 1);
        expect(places.toSorted((one, other) => one - other)).toEqual(all);
        expect(placesHeard(world.announced, room)).toEqual(all);
        const shown = await world.store.read((tx) => wholeHistory(tx, room, at(people, 0)));
        expect(shown.map(({ seq }) => seq)).toEqual(all);
      }
    },
  );

  check(
    "one unit's announcements stay together, in the order in which it made them",
    async (world) => {
      await Promise.all(
        times(50).map((n) =>
          world.store.write(async (tx) => {
            tellEnd(tx, `${n} begins`);
            await newAccount(tx, { username: `user${n}` });
            tellEnd(tx, `${n} ends`);
          }),
        ),
      );
      await world.store.write((tx) => tellEnd(tx, "all"));
      await world.heard("all");
      const told = world.announced.map((one) =>
        one.kind === "session_ended" ? one.session_id : "",
      );
      expect(told).toHaveLength(101);
      for (const n of times(50)) {
        expect(told.indexOf(`${n} ends`)).toBe(told.indexOf(`${n} begins`) + 1);
      }
    },
  );

  check("what is announced can be read", async ({ store }) => {
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
          tellEnd(tx, `user${n}`);
        }),
      ),
    );
    while (found.length < 50) await store.write(() => {});
    for (const account of await Promise.all(found)) expect(account).not.toBeNull();
  });
}
