import { expect } from "bun:test";
import type { Conversation } from "@parley/protocol";
import fc from "fast-check";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { newStory, script } from "./story.ts";
import { type Check, newAgent, START, times } from "./world.ts";

export function reading(check: Check) {
  const figures = ({ unread: { human, agent, mentions }, last_read_seq }: Conversation) => [
    human,
    agent,
    mentions,
    last_read_seq,
  ];

  check("sending reads up to the message, and others have it unread", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const agent = await world.store.write((tx) => newAgent(tx, alice, "claude"));
    const room = await world.group(alice, bob, agent);
    await world.send(room, alice, "@bob", { mentions: ["bob"] });
    await world.send(room, agent, "@alice @bob", { mentions: ["alice", "bob"] });
    expect(figures(await world.view(room, alice))).toEqual([0, 1, 1, 1]);
    expect(figures(await world.view(room, bob))).toEqual([1, 1, 2, 0]);
    await world.send(room, bob, "@bob", { mentions: ["bob"] });
    expect(figures(await world.view(room, bob))).toEqual([0, 0, 0, 3]);
    expect(figures(await world.view(room, alice))).toEqual([1, 1, 1, 1]);
  });

  check("a member's place moves forward only", async (world) => {
    const [alice, bob, carol] = await world.people("alice", "bob", "carol");
    const room = await world.group(alice, bob);
    for (const n of times(4)) await world.send(room, alice, `${n}`);
    const read = (account: AccountRecord, seq: number) =>
      world.store.write((tx) => tx.markRead(room.id, account.id, seq));
    const unread = (account: AccountRecord) =>
      world.store.read((tx) => tx.unreadCount(room.id, account.id));
    expect([await read(bob, 3), await unread(bob)]).toEqual([true, 1]);
    expect([await read(bob, 3), await unread(bob)]).toEqual([false, 1]);
    expect([await read(bob, 1), await unread(bob)]).toEqual([false, 1]);
    expect([await read(bob, 4), await unread(bob)]).toEqual([true, 0]);
    expect([await read(carol, 4), await unread(carol)]).toEqual([false, 0]);
  });

  check("somebody who joins has nothing unread of what was before", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice);
    for (const n of times(3)) await world.send(room, alice, `${n}`);
    await world.store.write((tx) => tx.insertMembers(room.id, [bob.id], START));
    expect(figures(await world.view(room, bob))).toEqual([0, 0, 0, 3]);
    expect(await world.texts(room, bob)).toEqual(["0", "1", "2"]);
  });

  check(
    "a mention that an edit brings to a message one has hidden is not unread",
    async (world) => {
      const [alice, bob] = await world.people("alice", "bob");
      const room = await world.group(alice, bob);
      const message = await world.send(room, alice, "hello");
      await world.hide(bob, message);
      await world.edit(message, "hello @bob", ["bob"]);
      expect(figures(await world.view(room, bob))).toEqual([0, 0, 0, 0]);
    },
  );

  check(
    "after anything that can happen the figures are those that counting gives",
    async (world) => {
      await fc.assert(
        fc.asyncProperty(script, (steps) =>
          world.store.write(async (tx) => {
            const story = await newStory(tx);
            for (const step of steps) {
              await story.take(step);
              await story.checkFigures();
            }
          }),
        ),
        { numRuns: 100 },
      );
    },
  );
}
