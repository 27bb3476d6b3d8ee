import { expect } from "bun:test";
import { NOBODY } from "../../../src/rules/accounts.ts";
import type { ImportedMessage } from "../../../src/store/imported-messages.ts";
import { isNonEmpty } from "../../../src/store/non-empty.ts";
import {
  at,
  type Chat,
  type Check,
  conversationOf,
  type Fixture,
  START,
  times,
  trySend,
} from "./fixture.ts";

export function importedMessages(check: Check) {
  async function pair(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const past = (sender: typeof alice, n: number): ImportedMessage => ({
      sender,
      content: `past ${n}`,
      client_msg_id: `${n}`,
      mentions: [],
      at: START - 1000 + n,
    });
    return { alice, bob, chat, past };
  }

  const importTo = (fixture: Fixture, chat: Chat, messages: readonly ImportedMessage[]) =>
    fixture.store.write(async (tx) => {
      if (!isNonEmpty(messages)) throw new Error("there is nothing to import");
      return tx.importMessages(await conversationOf(tx, chat), messages);
    });

  check(
    "they have their own times, the given order, and one counter value each",
    async (fixture) => {
      const { alice, bob, chat, past } = await pair(fixture);
      await fixture.send(chat, alice, "before");
      const results = await importTo(fixture, chat, [past(bob, 5), past(alice, 3), past(bob, 4)]);
      const inserted = results.map((result) => result.inserted);
      expect(inserted.map((message) => message?.seq)).toEqual([2, 3, 4]);
      const ids = results.map(({ uuid }) => uuid);
      const views = await fixture.store.read((tx) => tx.messageViews(ids, NOBODY));
      expect(views).toEqual(inserted as typeof views);
      expect(views[0]).toMatchObject({
        content: "past 5",
        client_msg_id: "5",
        sender: { username: bob.username },
        created_at: new Date(START - 995).toISOString(),
        finalized_at: new Date(START - 995).toISOString(),
        turn: null,
        imported: true,
      });
      const view = await fixture.view(chat, alice);
      expect(view.seq).toBe(4);
      expect(view.last_message).toEqual(at(views, 2));
    },
  );

  check("they place only a conversation in which nothing has happened", async (fixture) => {
    const { alice, bob, chat, past } = await pair(fixture);
    const updatedAt = async () => Date.parse((await fixture.view(chat, bob)).updated_at) - START;
    await importTo(fixture, chat, [past(bob, 3), past(alice, 5), past(bob, 4)]);
    expect(await updatedAt()).toBe(-995);
    await importTo(fixture, chat, [past(bob, 1)]);
    expect(await updatedAt()).toBe(-995);
    await importTo(fixture, chat, [past(bob, 7), past(bob, 2)]);
    expect(await updatedAt()).toBe(-993);
    const { created_at } = await fixture.send(chat, alice, "hello");
    await importTo(fixture, chat, [past(bob, 8)]);
    expect(await updatedAt()).toBe(Date.parse(created_at) - START);
  });

  check("they are unread for nobody, and move nobody's read position", async (fixture) => {
    const { alice, bob, chat, past } = await pair(fixture);
    await fixture.send(chat, alice, "before");
    const mentioning = { ...past(alice, 1), mentions: [bob.username] };
    await importTo(fixture, chat, [mentioning, past(bob, 2)]);
    expect(await fixture.view(chat, bob)).toMatchObject({
      unread_count: 1,
      unread: { human: 1, agent: 0, mentions: 0 },
      last_read_seq: 0,
    });
    expect(await fixture.view(chat, alice)).toMatchObject({ unread_count: 0, last_read_seq: 1 });
    await fixture.send(chat, alice, "after");
    expect((await fixture.view(chat, bob)).unread_count).toBe(2);
  });

  check("one that was stored before is not stored again", async (fixture) => {
    const { alice, bob, chat, past } = await pair(fixture);
    const sent = await fixture.send(chat, alice, "sent", { client_msg_id: "1" });
    const list = [past(alice, 1), past(bob, 1), past(bob, 1), past(alice, 2)];
    const first = await importTo(fixture, chat, list);
    expect(first.map(({ inserted }) => inserted?.seq ?? null)).toEqual([null, 2, null, 3]);
    expect([first[0]?.uuid, first[2]?.uuid]).toEqual([sent.id, at(first, 1).uuid]);
    const again = await importTo(fixture, chat, list);
    expect(again).toEqual(first.map(({ uuid }) => ({ uuid, inserted: null })));
    expect(await fixture.texts(chat, alice)).toEqual(["sent", "past 1", "past 2"]);
    expect((await fixture.view(chat, alice)).seq).toBe(3);
  });

  check("a later send with the client_msg_id of one finds it", async (fixture) => {
    const { alice, chat, past } = await pair(fixture);
    const [imported] = await importTo(fixture, chat, [past(alice, 1)]);
    const again = { client_msg_id: "1" };
    const sent = fixture.store.write((tx) => trySend(tx, chat, alice, "again", again));
    expect(await sent).toBeNull();
    const found = await fixture.store.read((tx) => tx.sentBefore(chat.id, alice.id, "1"));
    expect(found).toBe(imported?.uuid ?? "");
  });

  check("search finds them", async (fixture) => {
    const { alice, bob, chat, past } = await pair(fixture);
    await importTo(
      fixture,
      chat,
      times(500).map((n) => ({ ...past(alice, n), content: n === 250 ? "a needle" : `hay ${n}` })),
    );
    expect(await fixture.find(bob, ["needle"])).toEqual(["a needle"]);
  });
}
