import { expect } from "bun:test";
import { publicAccount } from "../../../src/rules/accounts.ts";
import {
  at,
  type Check,
  emitMarker,
  type Fixture,
  inSequence,
  newAgent,
  recordOf,
  START,
  seqsReceived,
  times,
  trySend,
} from "./fixture.ts";

export function messages(check: Check) {
  async function pair(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    return { alice, bob, chat: await fixture.group(alice, bob) };
  }

  check("messages of one sender are found in a range of the counter", async (fixture) => {
    const { alice, bob, chat } = await pair(fixture);
    const senders = [alice, bob, alice, alice, bob, alice];
    const sent = await inSequence(senders, (sender, n) => fixture.send(chat, sender, `${n}`));
    await fixture.remove(at(sent, 2));
    const sentIn = (after: number, upTo: number) => {
      const range = { conversationId: chat.id, senderId: alice.id, after, upTo };
      return fixture.store.read((tx) => tx.sentIn(range));
    };
    expect(await sentIn(0, 10)).toEqual([0, 3, 5].map((place) => at(sent, place).id));
    expect(await sentIn(1, 5)).toEqual([at(sent, 3).id]);
    expect(await sentIn(6, 10)).toEqual([]);
  });

  check("an inserted message is returned as later reads return it", async (fixture) => {
    const { alice, bob, chat } = await pair(fixture);
    const first = await fixture.send(chat, bob, "first");
    const sent = await fixture.send(chat, alice, "Grüße\n👍 @bob", {
      client_msg_id: "mine",
      reply_to_id: first.id,
      mentions: ["bob"],
      at: START + 5,
    });
    expect(sent).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
      conversation_id: chat.uuid,
      seq: 2,
      version: 2,
      sender: publicAccount(alice),
      content: "Grüße\n👍 @bob",
      client_msg_id: "mine",
      reply_to_id: first.id,
      created_at: new Date(START + 5).toISOString(),
      edited_at: null,
      finalized_at: new Date(START + 5).toISOString(),
      reactions: [],
      mentions: ["bob"],
      turn: null,
      action: null,
      uses: [],
      tool_calls: [],
      files: [],
    });
    const views = await fixture.store.read((tx) => tx.messageViews([sent.id], bob.id));
    expect(views).toEqual([sent]);
    expect((await fixture.view(chat, bob)).last_message).toEqual(sent);
  });

  check("messages that are sent together keep any text as it is", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const texts = [
      '"',
      "\\",
      '\\"',
      "{a,b}",
      "NULL",
      "null",
      " ",
      ",",
      "'",
      "\n\t",
      "{",
      '","',
      "$1",
      "é 👍",
    ];
    const chats = await inSequence(texts, () => fixture.group(alice));
    const sent = await Promise.all(
      texts.map((text, place) =>
        fixture.send(at(chats, place), alice, text, { client_msg_id: `${text}.` }),
      ),
    );
    const ids = sent.map(({ id }) => id);
    const views = await fixture.store.read((tx) => tx.messageViews(ids, alice.id));
    expect(views.map(({ content }) => content)).toEqual(texts);
    expect(views.map(({ client_msg_id }) => client_msg_id)).toEqual(
      texts.map((text) => `${text}.`),
    );
  });

  check("the record of one has the fields that the server decides by", async (fixture) => {
    const { alice, chat } = await pair(fixture);
    const agent = await fixture.store.write((tx) => newAgent(tx, alice, "claude"));
    const sent = await fixture.send(chat, agent, "hello", { mentions: ["alice"] });
    expect(await fixture.store.read((tx) => recordOf(tx, sent))).toEqual({
      id: expect.any(Number),
      uuid: sent.id,
      conversation_id: chat.id,
      conversation_uuid: chat.uuid,
      seq: 1,
      sender_id: agent.id,
      sender_owner_id: alice.id,
      sender_kind: "agent",
      mentions: ["alice"],
      files: [],
      finalized: true,
      deleted: false,
      imported: false,
    });
    expect(await fixture.store.read((tx) => tx.message(Bun.randomUUIDv7()))).toBeNull();
  });

  check("views are in the given order; unknown messages are left out", async (fixture) => {
    const { alice, chat } = await pair(fixture);
    const sent = await inSequence(times(12), (n) => fixture.send(chat, alice, `${n}`));
    const asked = [11, 3, 7, 0, 10].map((n) => at(sent, n).id);
    const shown = await fixture.store.read((tx) =>
      tx.messageViews([...asked, Bun.randomUUIDv7()], alice.id),
    );
    expect(shown.map(({ id }) => id)).toEqual(asked);
  });

  check("a repeated client_msg_id inserts nothing and changes nothing", async (fixture) => {
    const { alice, bob, chat } = await pair(fixture);
    const first = await fixture.send(chat, alice, "first", { client_msg_id: "same" });
    await fixture.send(chat, bob, "between");
    const before = await Promise.all([fixture.view(chat, alice), fixture.view(chat, bob)]);
    const again = await fixture.store.write((tx) =>
      trySend(tx, chat, alice, "second", { client_msg_id: "same", mentions: ["bob"] }),
    );
    expect(again).toBeNull();
    expect(await Promise.all([fixture.view(chat, alice), fixture.view(chat, bob)])).toEqual(before);
    const earlier = await fixture.store.read((tx) => tx.sentBefore(chat.id, alice.id, "same"));
    expect(earlier).toBe(first.id);
  });

  check("a client_msg_id is unique for its conversation and sender only", async (fixture) => {
    const { alice, bob, chat } = await pair(fixture);
    const other = await fixture.group(alice, bob);
    const options = { client_msg_id: "same" };
    const ids = [
      await fixture.send(chat, alice, "1", options),
      await fixture.send(chat, bob, "2", options),
      await fixture.send(other, alice, "3", options),
    ].map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    const sentBefore = (id: string) =>
      fixture.store.read((tx) => tx.sentBefore(chat.id, bob.id, id));
    expect(await sentBefore("same")).toBe(at(ids, 1));
    expect(await sentBefore("other")).toBeNull();
  });

  check("messages without a client_msg_id are not deduplicated", async (fixture) => {
    const { alice, chat } = await pair(fixture);
    for (const _ of times(3)) await fixture.send(chat, alice, "same");
    expect(await fixture.texts(chat, alice)).toEqual(["same", "same", "same"]);
  });

  check("concurrent sends with one client_msg_id insert and emit one message", async (fixture) => {
    const { alice, chat } = await pair(fixture);
    const sent = await Promise.all(
      times(50).map((n) =>
        fixture.store.write((tx) => trySend(tx, chat, alice, `${n}`, { client_msg_id: "same" })),
      ),
    );
    expect(sent.filter((message) => message !== null)).toHaveLength(1);
    expect((await fixture.view(chat, alice)).seq).toBe(1);
    await fixture.store.write((tx) => emitMarker(tx, "all"));
    await fixture.received("all");
    expect(seqsReceived(fixture.changes, chat)).toEqual([1]);
  });

  check("a client_msg_id stays used after its message is deleted", async (fixture) => {
    const { alice, chat } = await pair(fixture);
    const first = await fixture.send(chat, alice, "first", { client_msg_id: "same" });
    await fixture.remove(first);
    expect(
      await fixture.store.write((tx) =>
        trySend(tx, chat, alice, "second", { client_msg_id: "same" }),
      ),
    ).toBeNull();
    const earlier = await fixture.store.read((tx) => tx.sentBefore(chat.id, alice.id, "same"));
    expect(earlier).toBe(first.id);
  });

  check("an edit changes text and mentions, and keeps the position", async (fixture) => {
    const { alice, bob, chat } = await pair(fixture);
    const first = await fixture.send(chat, alice, "first", { mentions: ["alice"] });
    await fixture.send(chat, bob, "second");
    const version = await fixture.store.write(async (tx) =>
      tx.editMessage(await recordOf(tx, first), "changed", ["bob"], START + 9),
    );
    expect(version).toBe(3);
    const [view] = await fixture.store.read((tx) => tx.messageViews([first.id], bob.id));
    expect(view).toEqual({
      ...first,
      version: 3,
      content: "changed",
      mentions: ["bob"],
      edited_at: new Date(START + 9).toISOString(),
    });
    expect(await fixture.texts(chat, bob)).toEqual(["changed", "second"]);
  });
}
