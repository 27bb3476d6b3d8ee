import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { type Check, NOBODY, recordOf, START, shown, type World } from "./world.ts";

export function reactions(check: Check) {
  async function talk(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const message = await world.send(room, alice, "hello");
    const react = (reactor: AccountRecord, emoji: string) =>
      world.store.write(async (tx) =>
        tx.addReaction(await recordOf(tx, message), { reactor, emoji, at: START + 3 }),
      );
    const unreact = (reactor: AccountRecord, emoji: string) =>
      world.store.write(async (tx) =>
        tx.removeReaction(await recordOf(tx, message), reactor.id, emoji),
      );
    const shown = async (viewer: { id: number }) => {
      const [view] = await world.store.read((tx) => tx.messageViews([message.id], viewer.id));
      return view;
    };
    return { alice, bob, message, react, unreact, shown };
  }

  check("each takes the counter one up and changes the message's version", async (world) => {
    const { alice, bob, react, unreact, shown } = await talk(world);
    expect(await react(alice, "👍")).toBe(2);
    expect(await react(bob, "👍")).toBe(3);
    expect((await shown(bob))?.version).toBe(3);
    expect(await unreact(alice, "👍")).toBe(4);
    expect(await shown(bob)).toMatchObject({ version: 4, edited_at: null });
  });

  check(
    "they are summed up by emoji, in the order of the first, with one's own marked",
    async (world) => {
      const { alice, bob, react, unreact, shown } = await talk(world);
      await react(bob, "🎉");
      await react(alice, "👍🏽");
      await react(bob, "👍🏽");
      await react(alice, "👍");
      const summary = async (viewer: { id: number }) =>
        (await shown(viewer))?.reactions.map(({ emoji, count, reacted }) => [
          emoji,
          count,
          reacted,
        ]);
      expect(await summary(alice)).toEqual([
        ["🎉", 1, false],
        ["👍🏽", 2, true],
        ["👍", 1, true],
      ]);
      expect(await summary({ id: NOBODY })).toEqual([
        ["🎉", 1, false],
        ["👍🏽", 2, false],
        ["👍", 1, false],
      ]);
      await unreact(alice, "👍🏽");
      await unreact(bob, "🎉");
      expect(await summary(alice)).toEqual([
        ["👍🏽", 1, false],
        ["👍", 1, true],
      ]);
    },
  );

  check("one is found by its reactor and emoji until it is taken back", async (world) => {
    const { alice, bob, message, react, unreact } = await talk(world);
    const find = (reactor: AccountRecord, emoji: string) =>
      world.store.read(async (tx) => tx.reaction(await recordOf(tx, message), reactor, emoji));
    await react(bob, "👍");
    expect(await find(bob, "👍")).toEqual({
      message_id: message.id,
      reactor: shown(bob),
      emoji: "👍",
      created_at: new Date(START + 3).toISOString(),
    });
    expect(await find(alice, "👍")).toBeNull();
    expect(await find(bob, "🎉")).toBeNull();
    await unreact(bob, "👍");
    expect(await find(bob, "👍")).toBeNull();
  });

  check("they are listed with their reactors, the oldest first, page by page", async (world) => {
    const { alice, bob, message, react, unreact } = await talk(world);
    const list = (query: { emoji?: string; after?: number; limit?: number } = {}) =>
      world.store.read(async (tx) =>
        tx.reactions({
          message: await recordOf(tx, message),
          emoji: query.emoji,
          after: query.after,
          limit: query.limit ?? 10,
        }),
      );
    await react(bob, "🎉");
    await react(alice, "👍");
    await react(bob, "👍");
    const pairs = (found: Awaited<ReturnType<typeof list>>) =>
      found.map(({ reaction }) => [reaction.reactor.username, reaction.emoji]);
    const all = await list();
    expect(pairs(all)).toEqual([
      ["bob", "🎉"],
      ["alice", "👍"],
      ["bob", "👍"],
    ]);
    expect(all[0]?.reaction).toEqual({
      message_id: message.id,
      reactor: shown(bob),
      emoji: "🎉",
      created_at: new Date(START + 3).toISOString(),
    });
    expect(pairs(await list({ emoji: "👍" }))).toEqual(pairs(all.slice(1)));
    const [first] = await list({ limit: 1 });
    expect(pairs(await list({ after: first?.place ?? 0, limit: 1 }))).toEqual([["alice", "👍"]]);
    await unreact(bob, "🎉");
    expect(pairs(await list())).toEqual(pairs(all.slice(1)));
  });

  check("they go with their message", async (world) => {
    const { bob, message, react } = await talk(world);
    await react(bob, "👍");
    await world.remove(message);
    const found = await world.store.read(async (tx) =>
      tx.reaction(await recordOf(tx, message), bob, "👍"),
    );
    expect(found).toBeNull();
  });
}
