import { expect } from "bun:test";
import { at, type Check, inTurn, recordOf, START, send, times, type World } from "./world.ts";

export function hidingAndDeleting(check: Check) {
  async function talk(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await inTurn(times(4), (n) => world.send(room, alice, `${n}`));
    return { alice, bob, room, sent };
  }

  check("deleting several is one change, and they are gone for everyone", async (world) => {
    const { alice, bob, room, sent } = await talk(world);
    expect(await world.remove(at(sent, 1), at(sent, 3))).toBe(5);
    for (const viewer of [alice, bob]) {
      const view = await world.view(room, viewer);
      expect([view.seq, view.last_message?.content]).toEqual([5, "2"]);
      expect(await world.texts(room, viewer)).toEqual(["0", "2"]);
      const ids = sent.map(({ id }) => id);
      const shown = await world.store.read((tx) => tx.messageViews(ids, viewer.id));
      expect(shown.map(({ content }) => content)).toEqual(["0", "2"]);
    }
    expect(await world.store.read((tx) => recordOf(tx, at(sent, 1)))).toMatchObject({
      deleted: true,
      seq: 2,
    });
  });

  check("hiding is private to one account, and the counter stays", async (world) => {
    const { alice, bob, room, sent } = await talk(world);
    await world.hide(bob, at(sent, 0), at(sent, 3));
    expect(await world.texts(room, bob)).toEqual(["1", "2"]);
    expect(await world.texts(room, alice)).toEqual(["0", "1", "2", "3"]);
    const [hers, his] = [await world.view(room, alice), await world.view(room, bob)];
    expect([hers.seq, hers.last_message?.content]).toEqual([4, "3"]);
    expect([his.seq, his.last_message?.content]).toEqual([4, "2"]);
    const hidden = await world.store.read(async (tx) => {
      const record = await recordOf(tx, at(sent, 0));
      return [await tx.isHidden(record, bob.id), await tx.isHidden(record, alice.id)];
    });
    expect(hidden).toEqual([true, false]);
  });

  check("hiding takes the account's own counter up, by which it is found again", async (world) => {
    const { alice, bob, room, sent } = await talk(world);
    const since = (seq?: number) => world.store.read((tx) => tx.hiddenSince(bob.id, seq));
    const ids = (...places: number[]) => [
      { conversation_id: room.uuid, ids: places.map((place) => at(sent, place).id) },
    ];
    expect(await since()).toEqual({ hidden: [], seq: 0, has_more: false });
    expect(await world.hide(bob, at(sent, 0), at(sent, 3))).toBe(1);
    expect(await world.hide(bob, at(sent, 0))).toBeNull();
    expect(await world.hide(bob, at(sent, 0), at(sent, 1))).toBe(2);
    expect(await world.hide(alice, at(sent, 2))).toBe(1);
    expect(await since(0)).toEqual({ hidden: ids(0, 3, 1), seq: 2, has_more: false });
    expect(await since(1)).toEqual({ hidden: ids(1), seq: 2, has_more: false });
    expect(await since()).toEqual({ hidden: [], seq: 2, has_more: false });
    expect((await world.view(room, bob)).own_seq).toBe(2);
    expect((await world.view(room, alice)).own_seq).toBe(1);
  });

  check("hidden messages come page by page, and none is left out", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await world.store.write((tx) =>
      inTurn(times(1080), (n) => send(tx, room, alice, `${n}`)),
    );
    for (let from = 0; from < sent.length; from += 90) {
      await world.hide(bob, ...sent.slice(from, from + 90));
    }
    const found: string[] = [];
    for (let since = 0, more = true; more; ) {
      const page = await world.store.read((tx) => tx.hiddenSince(bob.id, since));
      found.push(...page.hidden.flatMap(({ ids }) => ids));
      [since, more] = [page.seq, page.has_more];
    }
    expect(found.toSorted()).toEqual(sent.map(({ id }) => id).toSorted());
  });

  check("hiding twice is hiding once", async (world) => {
    const { bob, room, sent } = await talk(world);
    await world.hide(bob, at(sent, 0));
    const before = await world.view(room, bob);
    await world.hide(bob, at(sent, 0));
    expect(await world.view(room, bob)).toEqual(before);
  });

  check("what was hidden stays so for somebody who leaves and comes back", async (world) => {
    const { bob, room, sent } = await talk(world);
    await world.hide(bob, at(sent, 2));
    await world.store.write(async (tx) => {
      await tx.deleteMembers(room.id, [bob.id]);
      await tx.insertMembers(room.id, [bob.id], START);
    });
    expect(await world.texts(room, bob)).toEqual(["0", "1", "3"]);
  });

  check("the last message is null when none is left to see", async (world) => {
    const { alice, bob, room, sent } = await talk(world);
    await world.hide(bob, ...sent);
    expect((await world.view(room, bob)).last_message).toBeNull();
    await world.remove(...sent);
    expect((await world.view(room, alice)).last_message).toBeNull();
    expect(
      (await world.store.read((tx) => tx.sharedConversation(room.id))).last_message,
    ).toBeNull();
  });
}
