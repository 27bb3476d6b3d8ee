import { expect } from "bun:test";
import { publicAccount } from "../../../src/rules/accounts.ts";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { type Check, type Fixture, NOBODY, recordOf, START } from "./fixture.ts";

export function reactions(check: Check) {
  async function talk(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, alice, "hello");
    const react = (reactor: AccountRecord, emoji: string) =>
      fixture.store.write(async (tx) =>
        tx.addReaction(await recordOf(tx, message), { reactor, emoji, at: START + 3 }),
      );
    const unreact = (reactor: AccountRecord, emoji: string) =>
      fixture.store.write(async (tx) =>
        tx.removeReaction(await recordOf(tx, message), reactor.id, emoji),
      );
    const view = async (viewer: { id: number }) => {
      const [found] = await fixture.store.read((tx) => tx.messageViews([message.id], viewer.id));
      return found;
    };
    return { alice, bob, message, react, unreact, view };
  }

  check(
    "reactions of one account are listed in pages, but not of deleted messages",
    async (fixture) => {
      const { alice, bob, message, react } = await talk(fixture);
      await react(bob, "🎉");
      await react(alice, "👍");
      await react(bob, "👍");
      const by = ({ id }: AccountRecord, after = 0, limit = 10) =>
        fixture.store.read((tx) => tx.reactionsBy({ accountId: id, after, limit }));
      const [first] = await by(bob, 0, 1);
      expect(first).toEqual({
        place: expect.any(Number),
        message_id: message.id,
        conversation_id: message.conversation_id,
        emoji: "🎉",
        created_at: START + 3,
      });
      expect((await by(bob, first?.place)).map(({ emoji }) => emoji)).toEqual(["👍"]);
      expect(await by(alice)).toHaveLength(1);
      await fixture.remove(message);
      expect(await by(bob)).toEqual([]);
    },
  );

  check(
    "each reaction increments the counter and changes the message's version",
    async (fixture) => {
      const { alice, bob, react, unreact, view } = await talk(fixture);
      expect(await react(alice, "👍")).toBe(2);
      expect(await react(bob, "👍")).toBe(3);
      expect((await view(bob))?.version).toBe(3);
      expect(await unreact(alice, "👍")).toBe(4);
      expect(await view(bob)).toMatchObject({ version: 4, edited_at: null });
    },
  );

  check(
    "reactions are summarised by emoji, ordered by the first of each, with the viewer's marked",
    async (fixture) => {
      const { alice, bob, react, unreact, view } = await talk(fixture);
      await react(bob, "🎉");
      await react(alice, "👍🏽");
      await react(bob, "👍🏽");
      await react(alice, "👍");
      const summary = async (viewer: { id: number }) =>
        (await view(viewer))?.reactions.map(({ emoji, count, reacted }) => [emoji, count, reacted]);
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

  check("a reaction is found by its reactor and emoji until it is removed", async (fixture) => {
    const { alice, bob, message, react, unreact } = await talk(fixture);
    const find = (reactor: AccountRecord, emoji: string) =>
      fixture.store.read(async (tx) => tx.reaction(await recordOf(tx, message), reactor, emoji));
    await react(bob, "👍");
    expect(await find(bob, "👍")).toEqual({
      message_id: message.id,
      reactor: publicAccount(bob),
      emoji: "👍",
      created_at: new Date(START + 3).toISOString(),
    });
    expect(await find(alice, "👍")).toBeNull();
    expect(await find(bob, "🎉")).toBeNull();
    await unreact(bob, "👍");
    expect(await find(bob, "👍")).toBeNull();
  });

  check("pages of reactions have each with its reactor, oldest first", async (fixture) => {
    const { alice, bob, message, react, unreact } = await talk(fixture);
    const list = (query: { emoji?: string; after?: number; limit?: number } = {}) =>
      fixture.store.read(async (tx) =>
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
      reactor: publicAccount(bob),
      emoji: "🎉",
      created_at: new Date(START + 3).toISOString(),
    });
    expect(pairs(await list({ emoji: "👍" }))).toEqual(pairs(all.slice(1)));
    const [first] = await list({ limit: 1 });
    expect(pairs(await list({ after: first?.place ?? 0, limit: 1 }))).toEqual([["alice", "👍"]]);
    await unreact(bob, "🎉");
    expect(pairs(await list())).toEqual(pairs(all.slice(1)));
  });

  check("deleting a message deletes its reactions", async (fixture) => {
    const { bob, message, react } = await talk(fixture);
    await react(bob, "👍");
    await fixture.remove(message);
    const found = await fixture.store.read(async (tx) =>
      tx.reaction(await recordOf(tx, message), bob, "👍"),
    );
    expect(found).toBeNull();
  });
}
