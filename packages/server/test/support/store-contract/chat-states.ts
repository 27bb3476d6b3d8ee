import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { ChatStateChange } from "../../../src/store/chat-states.ts";
import { isNonEmpty } from "../../../src/store/non-empty.ts";
import { type Chat, type Check, conversationOf, type Fixture, newAgent, START } from "./fixture.ts";

const HOUR_MS = 3_600_000;

export function chatStates(check: Check) {
  const set = (fixture: Fixture, chat: Chat, { id }: AccountRecord, change: ChatStateChange) =>
    fixture.writeIn(chat, (tx) => tx.setChatState(chat.id, id, change));
  const stateOf = (fixture: Fixture, chat: Chat, { id }: AccountRecord) =>
    fixture.store.read((tx) => tx.chatState(chat.id, id));
  const clear = (fixture: Fixture, chat: Chat, { id }: AccountRecord) =>
    fixture.writeIn(chat, (tx) => tx.clearChat(chat.id, id));
  const listed = (fixture: Fixture, { id: viewerId }: AccountRecord, archived?: boolean) =>
    fixture.store.read(async (tx) =>
      (await tx.chats({ viewerId, archived, limit: 10 })).map(({ id }) => id),
    );
  const markUnread = (fixture: Fixture, chat: Chat, { id }: AccountRecord, seq: number) =>
    fixture.writeIn(chat, (tx) => tx.markUnread(chat.id, id, seq));
  const totals = (fixture: Fixture, { id }: AccountRecord) =>
    fixture.store.read((tx) => tx.unreadTotals(id, START));

  check(
    "a view has defaults until something is set, and each change is counted",
    async (fixture) => {
      const [alice, bob] = await fixture.people("alice", "bob");
      const chat = await fixture.group(alice, bob);
      const state = { notify: "all", muted_until: null, pinned: false, archived: false };
      const view = { conversation_id: chat.uuid, last_read_seq: 0, cleared_seq: 0 };
      expect(await stateOf(fixture, chat, alice)).toEqual({ ...view, state, own_seq: 0 } as never);
      const muted_until = Date.now() + HOUR_MS;
      expect(await set(fixture, chat, alice, { notify: "mentions", muted_until })).toBe(true);
      expect(await set(fixture, chat, alice, { pinned: true, archived: true })).toBe(true);
      expect(await set(fixture, chat, alice, { pinned: true })).toBe(false);
      const all = { notify: "mentions", pinned: true, archived: true };
      expect(await stateOf(fixture, chat, alice)).toEqual({
        ...view,
        state: { ...all, muted_until: new Date(muted_until).toISOString() },
        own_seq: 2,
      } as never);
      expect((await stateOf(fixture, chat, bob))?.own_seq).toBe(0);
      expect(await fixture.store.read((tx) => tx.pinnedChats(alice.id))).toBe(1);
      const since = (own_seq: number) =>
        fixture.store.read((tx) => tx.chatStatesSince(alice.id, own_seq, 9));
      expect((await since(1)).states.map(({ conversation_id }) => conversation_id)).toEqual([
        chat.uuid,
      ]);
      expect(await since(2)).toEqual({ states: [], seq: 9, has_more: false });
    },
  );

  check("a member who left has another view after coming back", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    await fixture.send(chat, alice, "hello");
    await set(fixture, chat, bob, { notify: "none", pinned: true, archived: true });
    await clear(fixture, chat, bob);
    await fixture.writeIn(chat, (tx) => tx.deleteMembers(chat.id, [bob.id]));
    const record = () => fixture.store.read((tx) => conversationOf(tx, chat));
    expect((await record()).archived_count).toBe(0);
    await fixture.writeIn(chat, (tx) => tx.insertMembers(chat.id, [bob.id], START));
    expect(await stateOf(fixture, chat, bob)).toMatchObject({
      state: { notify: "all", pinned: false, archived: false },
      cleared_seq: 0,
    });
    expect(await fixture.texts(chat, bob)).toEqual(["hello"]);
  });

  check("the archives of those who are to see a message end", async (fixture) => {
    const [alice, bob, carol, dan, eve] = await fixture.people(
      "alice",
      "bob",
      "carol",
      "dan",
      "eve",
    );
    const chat = await fixture.group(alice, bob, carol, dan, eve);
    for (const one of [alice, bob, carol, dan]) await set(fixture, chat, one, { archived: true });
    await set(fixture, chat, bob, { notify: "none" });
    await set(fixture, chat, carol, { muted_until: START + HOUR_MS });
    await fixture.store.write((tx) => tx.block(dan.id, eve.id, START));
    const record = () => fixture.store.read((tx) => conversationOf(tx, chat));
    const end = (sender: AccountRecord, at = START) =>
      fixture.writeIn(chat, (tx) => tx.endArchives(chat.id, sender, at));
    expect((await record()).archived_count).toBe(4);
    expect((await end(eve)).map(({ username }) => username)).toEqual(["alice"]);
    expect((await record()).archived_count).toBe(3);
    expect((await end(bob)).map(({ username }) => username)).toEqual(["dan"]);
    expect((await end(alice, START + HOUR_MS)).map(({ id }) => id)).toEqual([carol.id]);
    expect((await record()).archived_count).toBe(1);
    expect((await stateOf(fixture, chat, bob))?.state.archived).toBe(true);
    expect(await listed(fixture, bob, true)).toEqual([chat.uuid]);
    expect(await listed(fixture, alice, true)).toEqual([]);
    expect(await listed(fixture, alice, false)).toEqual([chat.uuid]);
  });

  check("messages after a place are unread again, and others are not told", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const agent = await fixture.store.write((tx) => newAgent(tx, alice, "claude"));
    const chat = await fixture.group(alice, bob, agent);
    await fixture.send(chat, alice, "one @bob", { mentions: ["bob"] });
    await fixture.send(chat, agent, "two");
    await fixture.remove(await fixture.send(chat, alice, "three"));
    await fixture.send(chat, alice, "four @bob", { mentions: ["bob"] });
    await fixture.writeIn(chat, (tx) => tx.markRead(chat.id, bob.id, 5));
    const figures = async () => {
      const { unread, last_read_seq, own_seq } = await fixture.view(chat, bob);
      const reads = await fixture.store.read((tx) => tx.readPositions(chat.id));
      return { ...unread, at: last_read_seq, own_seq, shown: reads.bob };
    };
    expect(await markUnread(fixture, chat, bob, 5)).toBe(false);
    expect(await markUnread(fixture, chat, bob, 1)).toBe(true);
    const marked = { human: 1, agent: 1, mentions: 1, at: 1, own_seq: 1, shown: 5 };
    expect(await figures()).toEqual(marked);
    expect(await markUnread(fixture, chat, bob, 0)).toBe(true);
    expect(await figures()).toEqual({ ...marked, human: 2, mentions: 2, at: 0, own_seq: 2 });
    const read = (seq: number) => fixture.writeIn(chat, (tx) => tx.markRead(chat.id, bob.id, seq));
    expect(await read(2)).toEqual({ last_read_seq: 0, shown_read_seq: 5 });
    expect(await figures()).toEqual({ ...marked, agent: 0, at: 2, own_seq: 2 });
    expect(await read(6)).toEqual({ last_read_seq: 2, shown_read_seq: 5 });
    expect(await read(7)).toEqual({ last_read_seq: 6, shown_read_seq: null });
  });

  check("a message of one's own ends that, for others too", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    await fixture.send(chat, alice, "one");
    await fixture.writeIn(chat, (tx) => tx.markRead(chat.id, bob.id, 1));
    await markUnread(fixture, chat, bob, 0);
    await fixture.send(chat, bob, "two");
    expect(await fixture.store.read((tx) => tx.readPositions(chat.id))).toEqual({
      alice: 1,
      bob: 2,
    });
    expect((await fixture.view(chat, bob)).unread_count).toBe(0);
  });

  check("what was cleared exists for the others alone", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const old = await fixture.send(chat, alice, "old @bob", { mentions: ["bob"] });
    const gone = await fixture.send(chat, alice, "gone");
    expect(await clear(fixture, chat, bob)).toBe(1);
    expect(await clear(fixture, chat, bob)).toBeNull();
    const figures = ({
      unread_count,
      unread,
      last_read_seq,
      cleared_seq,
      last_message,
    }: Awaited<ReturnType<Fixture["view"]>>) => ({
      unread_count,
      mentions: unread.mentions,
      last_read_seq,
      cleared_seq,
      last_message,
    });
    expect(figures(await fixture.view(chat, bob))).toEqual({
      unread_count: 0,
      mentions: 0,
      last_read_seq: 2,
      cleared_seq: 2,
      last_message: null,
    });
    expect(await fixture.store.read((tx) => tx.readPositions(chat.id))).toEqual({
      alice: 2,
      bob: 0,
    });
    expect(await fixture.texts(chat, bob)).toEqual([]);
    expect(await fixture.texts(chat, alice)).toEqual(["old @bob", "gone"]);
    expect(await fixture.find(bob, ["old"])).toEqual([]);
    expect(await fixture.find(alice, ["old"])).toEqual(["old @bob"]);
    expect(await listed(fixture, bob)).toEqual([]);
    expect(await listed(fixture, alice)).toEqual([chat.uuid]);
    const unlisted = () => fixture.store.read((tx) => tx.unlistedChats(bob.id));
    expect(await unlisted()).toEqual([chat.uuid]);

    // Changes of what was cleared bring nothing back.
    await fixture.edit(old, "edited @bob", ["bob"]);
    await fixture.remove(gone);
    const updates = (since: number) =>
      fixture.store.read((tx) =>
        tx.updates({ conversationId: chat.id, viewerId: bob.id, since, limit: 10 }),
      );
    expect(await updates(0)).toMatchObject({ messages: [], deleted_ids: [], seq: 4 });
    expect(await listed(fixture, bob)).toEqual([]);

    const next = await fixture.send(chat, alice, "new");
    expect(await fixture.texts(chat, bob)).toEqual(["new"]);
    expect((await updates(0)).messages.map(({ id }) => id)).toEqual([next.id]);
    expect((await fixture.view(chat, bob)).unread_count).toBe(1);
    expect(await listed(fixture, bob)).toEqual([chat.uuid]);
    expect(await unlisted()).toEqual([]);
    await fixture.remove(next);
    expect(await listed(fixture, bob)).toEqual([chat.uuid]);
    expect(await markUnread(fixture, chat, bob, 2)).toBe(false);
  });

  check(
    "a conversation without messages can be cleared, and changes of a group too",
    async (fixture) => {
      const [alice, bob] = await fixture.people("alice", "bob");
      const chat = await fixture.group(alice, bob);
      expect(await clear(fixture, chat, bob)).toBe(1);
      expect(await listed(fixture, bob)).toEqual([]);
      const rename = (title: string) =>
        fixture.writeIn(chat, (tx) =>
          tx.changeGroup(chat.id, {
            actor: alice,
            changes: [{ kind: "renamed", title }],
            at: START,
          }),
        );
      const titles = () =>
        fixture.store.read(async (tx) =>
          (
            await tx.conversationChanges({
              conversationId: chat.id,
              viewerId: bob.id,
              after: 0,
              before: 9,
              limit: 9,
            })
          ).map(({ title }) => title),
        );
      await rename("One");
      expect(await listed(fixture, bob)).toEqual([chat.uuid]);
      expect(await titles()).toEqual(["One"]);
      await clear(fixture, chat, bob);
      expect(await titles()).toEqual([]);
      await rename("Two");
      expect(await titles()).toEqual(["Two"]);
    },
  );

  check("the totals of a badge leave out what notifies of nothing", async (fixture) => {
    const [alice, bob, eve] = await fixture.people("alice", "bob", "eve");
    const [one, two, three] = [
      await fixture.group(alice, bob),
      await fixture.group(alice, bob),
      await fixture.group(alice, bob, eve),
    ];
    expect(await totals(fixture, bob)).toEqual({ conversations: 0, messages: 0, mentions: 0 });
    for (const chat of [one, two, three]) {
      await fixture.send(chat, alice, "hello");
      await fixture.send(chat, alice, "@bob", { mentions: ["bob"] });
    }
    await fixture.send(three, eve, "@bob", { mentions: ["bob"] });
    expect(await totals(fixture, bob)).toEqual({ conversations: 3, messages: 7, mentions: 4 });
    await fixture.store.write((tx) => tx.block(bob.id, eve.id, START));
    await set(fixture, one, bob, { muted_until: START + 1 });
    await set(fixture, two, bob, { notify: "none" });
    expect(await totals(fixture, bob)).toEqual({ conversations: 3, messages: 2, mentions: 3 });
    for (const chat of [two, three]) {
      await fixture.writeIn(chat, (tx) => tx.markRead(chat.id, bob.id, 9));
    }
    expect(await totals(fixture, bob)).toEqual({ conversations: 1, messages: 0, mentions: 1 });
  });

  check(
    "an erased conversation exists for nobody, until its messages are deleted too",
    async (fixture) => {
      const [alice, bob] = await fixture.people("alice", "bob");
      const chat = await fixture.group(alice, bob);
      const message = await fixture.send(chat, alice, "secret");
      await fixture.store.write(async (tx) => {
        await tx.eraseChat(await conversationOf(tx, chat), START);
      });
      const find = () => fixture.store.read((tx) => tx.conversation(chat.uuid, alice.id));
      expect(await find()).toBeNull();
      expect(await listed(fixture, alice)).toEqual([]);
      expect(await fixture.find(alice, ["secret"])).toEqual([]);
      const open = () => fixture.store.read((tx) => tx.openChatErasures());
      expect(await open()).toEqual([chat]);
      await fixture.store.write(async (tx) => {
        const record = await tx.message(message.id);
        const found = record ? [record] : [];
        if (isNonEmpty(found)) await tx.deleteMessages(found, START);
        await tx.finishChatErasure(chat.id);
      });
      expect(await open()).toEqual([]);
      expect(await find()).toBeNull();
    },
  );
}
