import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { NewConversation } from "../../../src/store/conversations.ts";
import { type Check, conversationOf, type Fixture, START } from "./fixture.ts";

export function blocks(check: Check) {
  const block = ({ store }: Fixture, one: AccountRecord, other: AccountRecord) =>
    store.write((tx) => tx.block(one.id, other.id, START));
  const unblock = ({ store }: Fixture, one: AccountRecord, other: AccountRecord) =>
    store.write((tx) => tx.unblock(one.id, other.id));
  const list = ({ store }: Fixture, { id }: AccountRecord) => store.read((tx) => tx.blockList(id));

  check("a change of the block list increments the account's own counter", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    expect(await list(fixture, alice)).toEqual({ usernames: [], own_seq: 0 });
    expect(await block(fixture, alice, carol)).toBe(1);
    expect(await block(fixture, alice, carol)).toBeNull();
    expect(await block(fixture, alice, bob)).toBe(2);
    expect(await list(fixture, alice)).toEqual({ usernames: ["bob", "carol"], own_seq: 2 });
    expect(await list(fixture, bob)).toEqual({ usernames: [], own_seq: 0 });
    expect(await unblock(fixture, alice, carol)).toBe(3);
    expect(await unblock(fixture, alice, carol)).toBeNull();
    expect(await list(fixture, alice)).toEqual({ usernames: ["bob"], own_seq: 3 });
  });

  check("a block and its end show in the conversation of the two at once", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const uuid = Bun.randomUUIDv7();
    const direct = [alice.id, bob.id] as const;
    await fixture.store.write(async (tx) => {
      const made = { uuid, kind: "direct", title: null, created_by: alice.id, direct, at: START };
      const id = await tx.insertConversation(made as NewConversation);
      await tx.insertMembers(id, direct, START);
    });
    const blockOf = ({ id }: AccountRecord) =>
      fixture.store.write(async (tx) => (await tx.conversation(uuid, id))?.block);
    expect([await blockOf(alice), await blockOf(bob)]).toEqual([null, null]);
    await block(fixture, alice, bob);
    expect([await blockOf(alice), await blockOf(bob)]).toEqual(["own", "theirs"]);
    await unblock(fixture, alice, bob);
    expect([await blockOf(alice), await blockOf(bob)]).toEqual([null, null]);
  });

  check("hiding messages and blocking share the own counter", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, bob, "hello");
    expect(await fixture.hide(alice, message)).toBe(1);
    expect(await block(fixture, alice, bob)).toBe(2);
    expect((await fixture.view(chat, alice)).own_seq).toBe(2);
  });

  check("erasing an account deletes its block list", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    await block(fixture, alice, bob);
    await block(fixture, bob, alice);
    await fixture.store.write((tx) => tx.eraseAccount(alice, { messages: false, at: START }));
    expect((await list(fixture, alice)).usernames).toEqual([]);
    expect((await list(fixture, bob)).usernames).toEqual(["alice"]);
  });

  check("blocked accounts are listed in pages", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    await block(fixture, alice, bob);
    await block(fixture, alice, carol);
    const page = (after?: string) =>
      fixture.store.read((tx) => tx.blockedAccounts({ accountId: alice.id, after, limit: 1 }));
    expect(await page()).toEqual([bob]);
    expect(await page("bob")).toEqual([carol]);
    expect(await page("carol")).toEqual([]);
  });

  check("blockers are found among accounts", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    await block(fixture, alice, bob);
    const among = (accounts: AccountRecord[], others: AccountRecord[]) =>
      fixture.store.read((tx) =>
        tx.blockersAmong(
          accounts.map(({ id }) => id),
          others.map(({ id }) => id),
        ),
      );
    expect(await among([alice, bob, carol], [bob, carol])).toEqual([alice.id]);
    expect(await among([bob, carol], [alice, bob])).toEqual([]);
    expect(await among([], [bob])).toEqual([]);
  });

  check("a direct conversation shows the viewer who blocked whom", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const uuid = Bun.randomUUIDv7();
    const pair = [alice.id, bob.id] as const;
    await fixture.store.write(async (tx) => {
      const made = { uuid, kind: "direct", title: null, created_by: alice.id } as const;
      const id = await tx.insertConversation({ ...made, direct: pair, at: START });
      await tx.insertMembers(id, pair, START);
    });
    const group = await fixture.group(alice, bob);
    const blockFor = ({ id }: AccountRecord) =>
      fixture.store.read(async (tx) => (await tx.conversation(uuid, id))?.block);
    expect([await blockFor(alice), await blockFor(bob)]).toEqual([null, null]);
    await block(fixture, alice, bob);
    expect([await blockFor(alice), await blockFor(bob)]).toEqual(["own", "theirs"]);
    await block(fixture, bob, alice);
    expect([await blockFor(alice), await blockFor(bob)]).toEqual(["own", "own"]);
    await unblock(fixture, alice, bob);
    expect([await blockFor(alice), await blockFor(bob)]).toEqual(["theirs", "own"]);
    expect((await fixture.store.read((tx) => conversationOf(tx, group))).block).toBeNull();
  });
}

export function invitations(check: Check) {
  const refusing = ({ store }: Fixture, inviter: AccountRecord, ...people: AccountRecord[]) =>
    store.read((tx) =>
      tx.refusingInvitation(
        people.map(({ id }) => id),
        inviter.id,
      ),
    );

  check("everyone may add a person, unless they say otherwise", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const addedBy = () => fixture.store.read((tx) => tx.addedBy(alice.id));
    expect(await addedBy()).toBe("everyone");
    expect(await refusing(fixture, bob, alice)).toEqual([]);
    await fixture.store.write((tx) => tx.setAddedBy(alice.id, "known"));
    expect(await addedBy()).toBe("known");
    expect(await refusing(fixture, bob, alice)).toEqual([alice.id]);
  });

  check("people know the members of conversations in which they have written", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    await fixture.store.write((tx) => tx.setAddedBy(alice.id, "known"));
    const chat = await fixture.group(bob, alice);
    await fixture.send(chat, bob, "hello");
    expect(await refusing(fixture, bob, alice, carol)).toEqual([alice.id]);
    await fixture.send(chat, alice, "hello");
    expect(await refusing(fixture, bob, alice, carol)).toEqual([]);
    expect(await refusing(fixture, carol, alice)).toEqual([alice.id]);
    await fixture.writeIn(chat, (tx) => tx.deleteMembers(chat.id, [bob.id]));
    expect(await refusing(fixture, bob, alice)).toEqual([alice.id]);
  });

  check(
    "strangers are those who have written in no conversation with the inviter",
    async (fixture) => {
      const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
      const strangers = () =>
        fixture.store.read((tx) => tx.strangersAmong([alice.id, carol.id], bob.id));
      const chat = await fixture.group(bob, alice, carol);
      expect(await strangers()).toEqual([alice.id, carol.id]);
      await fixture.send(chat, alice, "hello");
      expect(await strangers()).toEqual([carol.id]);
    },
  );

  check(
    "unanswered groups are those of a creator in which the member has not written",
    async (fixture) => {
      const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
      const groups = [];
      for (let n = 0; n < 3; n++) groups.push(await fixture.group(bob, alice));
      const [first, second, third] = groups as [
        (typeof groups)[0],
        (typeof groups)[0],
        (typeof groups)[0],
      ];
      await fixture.group(carol, alice, bob);
      await fixture.send(second, alice, "hello");
      const unanswered = (member: AccountRecord, limit = 10) =>
        fixture.store.read((tx) => tx.unansweredGroups(member.id, bob.id, limit));
      expect(await unanswered(alice)).toEqual([first.uuid, third.uuid]);
      expect(await unanswered(alice, 1)).toEqual([first.uuid]);
      expect(await unanswered(carol)).toEqual([]);
    },
  );

  check("somebody who is blocked may not add the person", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    await fixture.store.write((tx) => tx.block(alice.id, bob.id, START));
    expect(await refusing(fixture, bob, alice, carol)).toEqual([alice.id]);
    expect(await refusing(fixture, alice, bob)).toEqual([]);
  });

  check("those who left a conversation for good are found", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const other = await fixture.group(alice, bob);
    const leave = () =>
      fixture.store.write(async (tx) => {
        const { id } = await conversationOf(tx, chat);
        await tx.leaveForGood(id, bob.id, START);
      });
    await leave();
    await leave();
    const gone = ({ id }: { id: number }) =>
      fixture.store.read((tx) => tx.goneForGood(id, [alice.id, bob.id]));
    expect(await gone(chat)).toEqual([bob.id]);
    expect(await gone(other)).toEqual([]);
  });
}
