import { expect } from "bun:test";
import { isNonEmpty } from "../../../src/store/non-empty.ts";
import {
  at,
  type Check,
  conversationOf,
  type Fixture,
  inSequence,
  recordOf,
  START,
  times,
} from "./fixture.ts";

export function hidingAndDeleting(check: Check) {
  async function talk(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const sent = await inSequence(times(4), (n) => fixture.send(chat, alice, `${n}`));
    return { alice, bob, chat, sent };
  }

  check("deleting several messages is one change, for all members", async (fixture) => {
    const { alice, bob, chat, sent } = await talk(fixture);
    expect(await fixture.remove(at(sent, 1), at(sent, 3))).toBe(5);
    for (const viewer of [alice, bob]) {
      const view = await fixture.view(chat, viewer);
      expect([view.seq, view.last_message?.content]).toEqual([5, "2"]);
      expect(await fixture.texts(chat, viewer)).toEqual(["0", "2"]);
      const ids = sent.map(({ id }) => id);
      const shown = await fixture.store.read((tx) => tx.messageViews(ids, viewer.id));
      expect(shown.map(({ content }) => content)).toEqual(["0", "2"]);
    }
    expect(await fixture.store.read((tx) => recordOf(tx, at(sent, 1)))).toMatchObject({
      deleted: true,
      seq: 2,
    });
  });

  check("hiding concerns one account only, and does not change the counter", async (fixture) => {
    const { alice, bob, chat, sent } = await talk(fixture);
    await fixture.hide(bob, at(sent, 0), at(sent, 3));
    expect(await fixture.texts(chat, bob)).toEqual(["1", "2"]);
    expect(await fixture.texts(chat, alice)).toEqual(["0", "1", "2", "3"]);
    const [hers, his] = [await fixture.view(chat, alice), await fixture.view(chat, bob)];
    expect([hers.seq, hers.last_message?.content]).toEqual([4, "3"]);
    expect([his.seq, his.last_message?.content]).toEqual([4, "2"]);
    const hidden = await fixture.store.read(async (tx) => {
      const record = await recordOf(tx, at(sent, 0));
      return [await tx.isHidden(record, bob.id), await tx.isHidden(record, alice.id)];
    });
    expect(hidden).toEqual([true, false]);
  });

  check(
    "hiding increments the account's own counter, and hidden messages are found by it",
    async (fixture) => {
      const { alice, bob, chat, sent } = await talk(fixture);
      const since = (seq?: number) => fixture.store.read((tx) => tx.hiddenSince(bob.id, seq));
      const ids = (...places: number[]) => [
        { conversation_id: chat.uuid, ids: places.map((place) => at(sent, place).id) },
      ];
      expect(await since()).toEqual({ hidden: [], seq: 0, has_more: false });
      expect(await fixture.hide(bob, at(sent, 0), at(sent, 3))).toBe(1);
      expect(await fixture.hide(bob, at(sent, 0))).toBeNull();
      expect(await fixture.hide(bob, at(sent, 0), at(sent, 1))).toBe(2);
      expect(await fixture.hide(alice, at(sent, 2))).toBe(1);
      expect(await since(0)).toEqual({ hidden: ids(0, 3, 1), seq: 2, has_more: false });
      expect(await since(1)).toEqual({ hidden: ids(1), seq: 2, has_more: false });
      expect(await since()).toEqual({ hidden: [], seq: 2, has_more: false });
      expect((await fixture.view(chat, bob)).own_seq).toBe(2);
      expect((await fixture.view(chat, alice)).own_seq).toBe(1);
    },
  );

  check("pages of hidden messages have each of them once", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const sent = await fixture.store.write(async (tx) => {
      const said = times(1080).map((n) => ({
        sender: alice,
        content: `${n}`,
        client_msg_id: `${n}`,
        mentions: [],
        at: START,
      }));
      if (!isNonEmpty(said)) throw new Error("there is nothing to import");
      const imported = await tx.importMessages(await conversationOf(tx, chat), said);
      return imported.map(({ uuid }) => ({ id: uuid }));
    });
    for (let from = 0; from < sent.length; from += 90) {
      await fixture.hide(bob, ...sent.slice(from, from + 90));
    }
    const found: string[] = [];
    for (let since = 0, more = true; more; ) {
      const page = await fixture.store.read((tx) => tx.hiddenSince(bob.id, since));
      found.push(...page.hidden.flatMap(({ ids }) => ids));
      [since, more] = [page.seq, page.has_more];
    }
    expect(found.toSorted()).toEqual(sent.map(({ id }) => id).toSorted());
  });

  check("hiding is idempotent", async (fixture) => {
    const { bob, chat, sent } = await talk(fixture);
    await fixture.hide(bob, at(sent, 0));
    const before = await fixture.view(chat, bob);
    await fixture.hide(bob, at(sent, 0));
    expect(await fixture.view(chat, bob)).toEqual(before);
  });

  check("messages stay hidden for a member who leaves and returns", async (fixture) => {
    const { bob, chat, sent } = await talk(fixture);
    await fixture.hide(bob, at(sent, 2));
    await fixture.writeIn(chat, async (tx) => {
      await tx.deleteMembers(chat.id, [bob.id]);
      await tx.insertMembers(chat.id, [bob.id], START);
    });
    expect(await fixture.texts(chat, bob)).toEqual(["0", "1", "3"]);
  });

  check("the last message is null when none is visible", async (fixture) => {
    const { alice, bob, chat, sent } = await talk(fixture);
    await fixture.hide(bob, ...sent);
    expect((await fixture.view(chat, bob)).last_message).toBeNull();
    await fixture.remove(...sent);
    expect((await fixture.view(chat, alice)).last_message).toBeNull();
    expect(
      (await fixture.store.read((tx) => tx.sharedConversation(chat.id))).last_message,
    ).toBeNull();
  });
}
