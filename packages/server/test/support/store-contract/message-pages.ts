import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import { at, type Check, type Fixture, inSequence, send, times } from "./fixture.ts";

export function messagePages(check: Check) {
  /** Thirty messages of which every third cannot be seen by the viewer. */
  async function long(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const sent = await fixture.store.write((tx) =>
      inSequence(times(30), (n) => send(tx, chat, alice, `${n}`)),
    );
    await fixture.remove(...sent.filter((_, n) => n % 6 === 1));
    await fixture.hide(bob, ...sent.filter((_, n) => n % 6 === 4));
    const visible = sent.filter((_, n) => n % 3 !== 1).map(({ content }) => content);
    const page = async (
      limit: number,
      from?: { seq: number; direction: "older" | "newer" },
    ): Promise<{ items: Message[]; texts: string[]; has_more: boolean }> => {
      const query = { conversationId: chat.id, viewerId: bob.id, from, limit };
      const { items, has_more } = await fixture.store.read((tx) => tx.messagePage(query));
      return { items, texts: items.map(({ content }) => content), has_more };
    };
    return { visible, page, sent };
  }

  check("without an anchor, a page has the latest messages, oldest first", async (fixture) => {
    const { visible, page } = await long(fixture);
    expect(await page(5)).toMatchObject({ texts: visible.slice(-5), has_more: true });
    expect(await page(20)).toMatchObject({ texts: visible, has_more: false });
    expect(await page(100)).toMatchObject({ texts: visible, has_more: false });
  });

  for (const direction of ["older", "newer"] as const) {
    check(
      `following the ${direction} pages to the end gives all there is to see`,
      async (fixture) => {
        const { visible, page } = await long(fixture);
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

  check("the anchor is not part of the page, and may be an invisible message", async (fixture) => {
    const { page, sent } = await long(fixture);
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
  });

  check("a conversation without messages has an empty page", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const { id: conversationId } = await fixture.group(alice);
    const query = { conversationId, viewerId: alice.id, limit: 5 };
    const page = await fixture.store.read((tx) => tx.messagePage(query));
    expect(page).toEqual({ items: [], has_more: false });
  });
}
