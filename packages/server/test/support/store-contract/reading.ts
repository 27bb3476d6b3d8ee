import { expect } from "bun:test";
import type { Conversation } from "@parley/protocol";
import fc from "fast-check";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { type Check, newAgent, START, times } from "./fixture.ts";
import { newModel, randomSteps } from "./model.ts";

export function reading(check: Check) {
  const figures = ({ unread: { human, agent, mentions }, last_read_seq }: Conversation) => [
    human,
    agent,
    mentions,
    last_read_seq,
  ];

  check("a sent message is read for its sender and unread for the others", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const agent = await fixture.store.write((tx) => newAgent(tx, alice, "claude"));
    const chat = await fixture.group(alice, bob, agent);
    await fixture.send(chat, alice, "@bob", { mentions: ["bob"] });
    await fixture.send(chat, agent, "@alice @bob", { mentions: ["alice", "bob"] });
    expect(figures(await fixture.view(chat, alice))).toEqual([0, 1, 1, 1]);
    expect(figures(await fixture.view(chat, bob))).toEqual([1, 1, 2, 0]);
    await fixture.send(chat, bob, "@bob", { mentions: ["bob"] });
    expect(figures(await fixture.view(chat, bob))).toEqual([0, 0, 0, 3]);
    expect(figures(await fixture.view(chat, alice))).toEqual([1, 1, 1, 1]);
  });

  check("a read position only moves forward", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    const chat = await fixture.group(alice, bob);
    for (const n of times(4)) await fixture.send(chat, alice, `${n}`);
    const read = (account: AccountRecord, seq: number) =>
      fixture.writeIn(chat, async (tx) => !!(await tx.markRead(chat.id, account.id, seq)));
    const unread = (account: AccountRecord) =>
      fixture.store.read((tx) => tx.unreadCount(chat.id, account.id));
    expect([await read(bob, 3), await unread(bob)]).toEqual([true, 1]);
    expect([await read(bob, 3), await unread(bob)]).toEqual([false, 1]);
    expect([await read(bob, 1), await unread(bob)]).toEqual([false, 1]);
    expect([await read(bob, 4), await unread(bob)]).toEqual([true, 0]);
    expect([await read(carol, 4), await unread(carol)]).toEqual([false, 0]);
  });

  check("a new member has no unread messages", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice);
    for (const n of times(3)) await fixture.send(chat, alice, `${n}`);
    await fixture.writeIn(chat, (tx) => tx.insertMembers(chat.id, [bob.id], START));
    expect(figures(await fixture.view(chat, bob))).toEqual([0, 0, 0, 3]);
    expect(await fixture.texts(chat, bob)).toEqual(["0", "1", "2"]);
  });

  check("a mention that an edit adds to a hidden message is not unread", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, alice, "hello");
    await fixture.hide(bob, message);
    await fixture.edit(message, "hello @bob", ["bob"]);
    expect(figures(await fixture.view(chat, bob))).toEqual([0, 0, 0, 0]);
  });

  check(
    "unread counts equal a count of the messages after any sequence of steps",
    async (fixture) => {
      await fc.assert(
        fc.asyncProperty(randomSteps, (steps) =>
          fixture.store.write(async (tx) => {
            const model = await newModel(tx);
            // A wrong count stays wrong until the next read position: after each step, one is enough.
            for (const [n, step] of steps.entries()) {
              await model.take(step);
              await model.checkUnreadCount(n);
            }
            await model.checkUnreadCounts();
          }),
        ),
        { numRuns: 100 },
      );
    },
  );
}
