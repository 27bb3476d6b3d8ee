import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import { at, type Check, inTurn, send, times, type World } from "./world.ts";

export function history(check: Check) {
  /** Thirty messages of which every third cannot be seen by the viewer. */
  async function long(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await world.store.write((tx) =>
      inTurn(times(30), (n) => send(tx, room, alice, `${n}`)),
    );
    await world.remove(...sent.filter((_, n) => n % 6 === 1));
    await world.hide(bob, ...sent.filter((_, n) => n % 6 === 4));
    const visible = sent.filter((_, n) => n % 3 !== 1).map(({ content }) => content);
    const page = async (
      limit: number,
      from?: { seq: number; direction: "older" | "newer" },
    ): Promise<{ items: Message[]; texts: string[]; has_more: boolean }> => {
      const query = { conversationId: room.id, viewerId: bob.id, from, limit };
      const { items, has_more } = await world.store.read((tx) => tx.history(query));
      return { items, texts: items.map(({ content }) => content), has_more };
    };
    return { visible, page, sent };
  }

  check("without a place it is the latest page, oldest first", async (world) => {
    const { visible, page } = await long(world);
    expect(await page(5)).toMatchObject({ texts: visible.slice(-5), has_more: true });
    expect(await page(20)).toMatchObject({ texts: visible, has_more: false });
    expect(await page(100)).toMatchObject({ texts: visible, has_more: false });
  });

  for (const direction of ["older", "newer"] as const) {
    check(
      `following the ${direction} pages to the end gives all there is to see`,
      async (world) => {
        const { visible, page } = await long(world);
        for (const limit of [1, 3, 7]) {
          const read: string[] = [];
          let seq = direction === "older" ? 31 : 0;
          for (let more = true; more; ) {
            const { items, texts, has_more } = await page(limit, { seq, direction });
            if (direction === "older") read.unshift(...texts);
            else read.push(...texts);
            more = has_more;
            seq = (direction === "older" ? items.at(0) : items.at(-1))?.seq ?? seq;
          }
          expect(read).toEqual(visible);
        }
      },
    );
  }

  check(
    "the place itself is on neither side, and may be one that cannot be seen",
    async (world) => {
      const { page, sent } = await long(world);
      const around = async (n: number) => {
        const { seq } = at(sent, n);
        const older = await page(2, { seq, direction: "older" });
        const newer = await page(2, { seq, direction: "newer" });
        return [older.texts, newer.texts];
      };
      expect(await around(9)).toEqual([
        ["6", "8"],
        ["11", "12"],
      ]);
      expect(await around(7)).toEqual([
        ["5", "6"],
        ["8", "9"],
      ]);
    },
  );

  check("a conversation without messages has an empty page", async (world) => {
    const [alice] = await world.people("alice");
    const { id: conversationId } = await world.group(alice);
    const query = { conversationId, viewerId: alice.id, limit: 5 };
    const page = await world.store.read((tx) => tx.history(query));
    expect(page).toEqual({ items: [], has_more: false });
  });
}
