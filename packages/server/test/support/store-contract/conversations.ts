import { expect } from "bun:test";
import type { Conversation, ConversationChange, SharedConversation } from "@parley/protocol";
import { publicAccount } from "../../../src/rules/accounts.ts";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { NewChange } from "../../../src/store/group-changes.ts";
import {
  at,
  type Check,
  type Fixture,
  inSequence,
  NOBODY,
  newAgent,
  newGroup,
  recordOf,
  START,
  times,
} from "./fixture.ts";

export function conversations(check: Check) {
  const trio = (fixture: Fixture) => fixture.people("alice", "bob", "carol");

  check("a new group has the values it was created with", async (fixture) => {
    const [alice, bob] = await trio(fixture);
    const chat = await fixture.store.write((tx) => newGroup(tx, [alice, bob], { title: "Team" }));
    const shared: SharedConversation = {
      id: chat.uuid,
      kind: "group",
      title: "Team",
      participants: [publicAccount(alice), publicAccount(bob)],
      created_by: publicAccount(alice),
      admin: "alice",
      created_at: new Date(START).toISOString(),
      updated_at: new Date(START).toISOString(),
      seq: 0,
      last_message: null,
      participant_count: 2,
      picture_id: null,
    };
    const own = {
      unread_count: 0,
      unread: { human: 0, agent: 0, mentions: 0 },
      last_read_seq: 0,
      own_seq: 0,
      state: { notify: "all", muted_until: null, pinned: false, archived: false } as const,
      cleared_seq: 0,
    };
    const { store } = fixture;
    expect(await store.read((tx) => tx.sharedConversation(chat.id))).toEqual(shared);
    expect(await fixture.view(chat, bob)).toEqual({ ...shared, ...own });
    expect(await store.read((tx) => tx.conversationDetail(chat.id, bob.id))).toEqual({
      ...shared,
      ...own,
      reads: { alice: 0, bob: 0 },
    });
  });

  check("somebody who left is a former member until they come back", async (fixture) => {
    const [alice, bob] = await trio(fixture);
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, bob, "hello");
    const former = ({ id }: AccountRecord) =>
      fixture.store.read((tx) => tx.formerConversations(id));
    expect(await former(bob)).toEqual([]);
    await fixture.writeIn(chat, (tx) => tx.deleteMembers(chat.id, [bob.id]));
    expect(await former(bob)).toEqual([{ id: chat.id, seq: message.seq }]);
    expect(await former(alice)).toEqual([]);
    await fixture.writeIn(chat, (tx) => tx.insertMembers(chat.id, [bob.id], START));
    expect(await former(bob)).toEqual([]);
  });

  check("the record of one says whether the viewer is a member", async (fixture) => {
    const [alice, bob] = await trio(fixture);
    const chat = await fixture.group(alice);
    const find = (uuid: string, viewer: AccountRecord) =>
      fixture.store.read((tx) => tx.conversation(uuid, viewer.id));
    const record = {
      ...chat,
      kind: "group",
      title: null,
      admin_id: alice.id,
      closed_at: null,
      picture_id: null,
      seq: 0,
      participant_count: 1,
      agent_count: 0,
      archived_count: 0,
      block: null,
    } as const;
    expect(await find(chat.uuid, alice)).toEqual({ ...record, joined: true });
    expect(await find(chat.uuid, bob)).toEqual({ ...record, joined: false });
    expect(await find(Bun.randomUUIDv7(), alice)).toBeNull();
  });

  check(
    "a direct conversation has no admin and is found by its pair, in either order",
    async (fixture) => {
      const [alice, bob, carol] = await trio(fixture);
      const { store } = fixture;
      const uuid = Bun.randomUUIDv7();
      const id = await store.write(async (tx) => {
        const direct = [bob.id, alice.id] as const;
        const made = { uuid, kind: "direct", title: null, created_by: bob.id, direct } as const;
        return tx.insertConversation({ ...made, at: START });
      });
      const find = (...pair: [AccountRecord, AccountRecord]) =>
        store.read((tx) => tx.directConversation([pair[0].id, pair[1].id]));
      expect(await find(alice, bob)).toBe(id);
      expect(await find(bob, alice)).toBe(id);
      expect(await find(alice, carol)).toBeNull();
      expect(await find(alice, alice)).toBeNull();
      expect(await store.read((tx) => tx.conversation(uuid, bob.id))).toMatchObject({
        kind: "direct",
        admin_id: null,
      });
    },
  );

  check(
    "there is one direct conversation for each pair, also under concurrent inserts",
    async (fixture) => {
      const [alice, bob] = await trio(fixture);
      const start = (by: AccountRecord, other: AccountRecord) =>
        fixture.store.write(async (tx) => {
          const direct = [by.id, other.id] as const;
          const existing = await tx.directConversation(direct);
          if (existing !== null) return existing;
          const made = {
            kind: "direct",
            title: null,
            created_by: by.id,
            direct,
            at: START,
          } as const;
          return tx.insertConversation({ uuid: Bun.randomUUIDv7(), ...made });
        });
      const ids = await Promise.all(
        times(10).flatMap(() => [start(alice, bob), start(bob, alice)]),
      );
      expect(new Set(ids).size).toBe(1);
    },
  );

  check(
    "after its pair is released, another direct conversation is found, also under concurrent inserts",
    async (fixture) => {
      const [alice, bob] = await trio(fixture);
      const { store } = fixture;
      const direct = [alice.id, bob.id] as const;
      const made = { kind: "direct", created_by: alice.id, direct, at: START } as const;
      const start = (title: string) =>
        store.write(async (tx) => {
          await tx.lockCredentials(alice.id);
          const existing = await tx.directConversation(direct);
          if (existing !== null) await tx.releasePair(existing);
          return tx.insertConversation({ uuid: Bun.randomUUIDv7(), title, ...made });
        });
      const find = () => store.read((tx) => tx.directConversation(direct));
      expect(await find()).toBeNull();
      expect(await start("first")).toBe((await find()) as number);
      expect(await start("second")).toBe((await find()) as number);
      const ids = await Promise.all(times(10).map((_, place) => start(`${place}`)));
      expect(new Set(ids).size).toBe(10);
      expect(ids).toContain((await find()) as number);
    },
  );

  check("members are in the order in which they joined", async (fixture) => {
    const [alice, bob, carol] = await trio(fixture);
    const { store } = fixture;
    const chat = await fixture.group(carol, alice);
    await fixture.writeIn(chat, async (tx) => {
      await tx.insertMembers(chat.id, [bob.id], START);
      await tx.deleteMembers(chat.id, [carol.id]);
      await tx.insertMembers(chat.id, [carol.id], START);
    });
    expect(await store.read((tx) => tx.members(chat.id))).toEqual(
      [alice, bob, carol].map((account) => ({ account, always_on: false, last_read_seq: 0 })),
    );
    const { participants, participant_count } = await fixture.view(chat, bob);
    expect(participants.map(({ username }) => username)).toEqual(["alice", "bob", "carol"]);
    expect(participant_count).toBe(3);
  });

  check("participantsAmong returns the members among the given usernames", async (fixture) => {
    const [alice, bob] = await trio(fixture);
    const chat = await fixture.group(alice, bob);
    const among = (names: string[]) =>
      fixture.store.read((tx) => tx.participantsAmong(chat.id, names));
    expect((await among(["nobody", "carol", "bob", "alice"])).toSorted()).toEqual(["alice", "bob"]);
    expect(await among([])).toEqual([]);
  });

  check("lists show fifty participants, the detail shows all", async (fixture) => {
    const people = await fixture.people(
      ...times(55).map((n) => `user${String(n).padStart(2, "0")}`),
    );
    const chat = await fixture.group(...people);
    const [first] = people as [AccountRecord];
    const { store } = fixture;
    const shown = people.map(({ username }) => username);
    const names = ({ participants }: Pick<Conversation, "participants">) =>
      participants.map(({ username }) => username);
    const view = await fixture.view(chat, first);
    expect([names(view), view.participant_count]).toEqual([shown.slice(0, 50), 55]);
    const shared = await store.read((tx) => tx.sharedConversation(chat.id));
    expect(names(shared)).toEqual(shown.slice(0, 50));
    const detail = await store.read((tx) => tx.conversationDetail(chat.id, first.id));
    expect([names(detail), Object.keys(detail.reads)]).toEqual([shown, shown]);
  });

  check("the detail has the read position of each human", async (fixture) => {
    const [alice, bob] = await trio(fixture);
    const { store } = fixture;
    const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
    const chat = await fixture.group(alice, bob, agent);
    for (const sender of [alice, bob, agent, alice]) await fixture.send(chat, sender, "hello");
    const { reads } = await store.read((tx) => tx.conversationDetail(chat.id, bob.id));
    expect(reads).toEqual({ alice: 4, bob: 2 });
  });

  check("changes of a group have their actor and their subjects", async (fixture) => {
    const [alice, bob, carol] = await trio(fixture);
    const chat = await fixture.group(alice, bob);
    const change = (actor: AccountRecord, at: number, ...changes: [NewChange, ...NewChange[]]) =>
      fixture.writeIn(chat, (tx) => tx.changeGroup(chat.id, { actor, changes, at }));
    await change(alice, START + 1, { kind: "added", subjects: [bob, carol] });
    await change(
      bob,
      START + 2,
      { kind: "left", subjects: [bob] },
      { kind: "admin_changed", subjects: [carol] },
    );
    await change(carol, START + 3, { kind: "renamed", title: "New" });
    await change(carol, START + 4, { kind: "mode_changed", subjects: [alice], always_on: false });
    const between = (after: number, before: number, limit = 100) =>
      fixture.store.read((tx) =>
        tx.conversationChanges({
          conversationId: chat.id,
          viewerId: alice.id,
          after,
          before,
          limit,
        }),
      );
    const base = { subjects: [], subject_count: 0, title: null, always_on: null };
    const concerning = (...accounts: AccountRecord[]) => ({
      ...base,
      subjects: accounts.map(publicAccount),
      subject_count: accounts.length,
    });
    const made = (seq: number, actor: AccountRecord) => ({
      seq,
      at: new Date(START + seq).toISOString(),
      actor: publicAccount(actor),
    });
    const all = [
      { ...made(1, alice), kind: "added", ...concerning(bob, carol) },
      { ...made(2, bob), kind: "left", ...concerning(bob) },
      { ...made(2, bob), kind: "admin_changed", ...concerning(carol) },
      { ...made(3, carol), kind: "renamed", ...base, title: "New" },
      { ...made(4, carol), kind: "mode_changed", ...concerning(alice), always_on: false },
    ] as ConversationChange[];
    expect(await between(0, 5)).toEqual(all);
    expect(await between(1, 4)).toEqual(all.slice(1, 4));
    expect(await between(0, 5, 2)).toEqual(all.slice(3));
    await fixture.store.write((tx) => tx.setDisplayName(bob.id, "Robert"));
    expect((await between(1, 3))[0]?.actor.display_name).toBe("Robert");
  });

  check("a change with many subjects lists the first fifty", async (fixture) => {
    const [alice] = await trio(fixture);
    const crowd = await fixture.people(...times(60).map((n) => `crowd${n}`));
    const chat = await fixture.group(alice);
    const changes = [{ kind: "added", subjects: crowd }] as const;
    await fixture.writeIn(chat, (tx) =>
      tx.changeGroup(chat.id, { actor: alice, changes, at: START }),
    );
    const query = { conversationId: chat.id, viewerId: NOBODY, after: 0, before: 9, limit: 9 };
    const [change] = await fixture.store.read((tx) => tx.conversationChanges(query));
    expect(change?.subject_count).toBe(60);
    expect(change?.subjects).toEqual(crowd.slice(0, 50).map(publicAccount));
  });

  check(
    "a change of the group increments the counter and moves the group to the top of the list",
    async (fixture) => {
      const [alice, bob] = await trio(fixture);
      const chat = await fixture.group(alice, bob);
      const seq = await fixture.writeIn(chat, async (tx) => {
        await tx.setTitle(chat.id, "New name");
        await tx.setAdmin(chat.id, bob.id);
        const changes = [{ kind: "renamed", title: "New name" }] as const;
        return tx.changeGroup(chat.id, { actor: alice, changes, at: START + 60_000 });
      });
      expect(seq).toBe(1);
      expect(await fixture.view(chat, alice)).toMatchObject({
        title: "New name",
        admin: "bob",
        seq: 1,
        updated_at: new Date(START + 60_000).toISOString(),
      });
      await fixture.writeIn(chat, (tx) => tx.setAdmin(chat.id, null));
      expect((await fixture.view(chat, alice)).admin).toBeNull();
    },
  );

  check(
    "messages move a conversation to the top of the list; edits, reactions and deletions do not",
    async (fixture) => {
      const [alice] = await trio(fixture);
      const chat = await fixture.group(alice);
      const message = await fixture.send(chat, alice, "hello", { at: START + 1000 });
      const updated = async () => Date.parse((await fixture.view(chat, alice)).updated_at) - START;
      expect(await updated()).toBe(1000);
      await fixture.store.write(async (tx) => {
        const record = await recordOf(tx, message);
        await tx.editMessage(record, "changed", [], START + 2000);
        await tx.addReaction(record, { reactor: alice, emoji: "👍", at: START + 3000 });
        await tx.deleteMessages([record], START + 4000);
      });
      expect(await updated()).toBe(1000);
    },
  );

  check(
    "an account's counters are those of the conversations that it is a member of",
    async (fixture) => {
      const [alice, bob] = await trio(fixture);
      const [one, two] = [await fixture.group(alice, bob), await fixture.group(bob)];
      await fixture.send(one, alice, "hello");
      const counters = async (account: AccountRecord) =>
        new Map(
          (await fixture.store.read((tx) => tx.counters(account.id))).map(({ uuid, seq }) => [
            uuid,
            seq,
          ]),
        );
      expect(await counters(alice)).toEqual(new Map([[one.uuid, 1]]));
      expect(await counters(bob)).toEqual(
        new Map([
          [one.uuid, 1],
          [two.uuid, 0],
        ]),
      );
      await fixture.writeIn(one, (tx) => tx.deleteMembers(one.id, [bob.id]));
      expect(await counters(bob)).toEqual(new Map([[two.uuid, 0]]));
    },
  );

  check(
    "the list is ordered by the latest update, and its pages have each conversation once",
    async (fixture) => {
      const [alice, bob] = await trio(fixture);
      const { store } = fixture;
      const chats = await store.write((tx) =>
        inSequence(times(9), (n) =>
          newGroup(tx, n === 4 ? [bob] : [alice, bob], { at: START + (n >> 1) }),
        ),
      );
      await fixture.send(at(chats, 1), bob, "hello", { at: START + 100 });
      const page = (after?: { updated_at: number; id: number }, limit = 100) =>
        store.read((tx) => tx.chats({ viewerId: alice.id, after, limit }));
      const place = (uuid: string) => chats.findIndex((chat) => chat.uuid === uuid);
      const whole = (await page()).map(({ id }) => place(id));
      expect(whole).toEqual([1, 8, 7, 6, 5, 3, 2, 0]);
      const paged: number[] = [];
      for (let after: { updated_at: number; id: number } | undefined; ; ) {
        const found = await page(after, 3);
        paged.push(...found.map(({ id }) => place(id)));
        const end = found.at(-1);
        if (!end) break;
        after = { updated_at: Date.parse(end.updated_at), id: at(chats, place(end.id)).id };
      }
      expect(paged).toEqual(whole);
      const [latest] = await page();
      expect(latest).toEqual(await fixture.view(at(chats, 1), alice));
    },
  );
}
