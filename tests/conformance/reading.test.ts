import { describe, expect, test } from "bun:test";
import { failure, groupOf, people, say, transports } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
describe.each(transports)("readChat over %s", (transport) => {
  const places = async () => {
    const chat = await groupOf(alice, bob);
    const [one, two, three] = [
      await say(alice, chat, `one @${bob.username}`),
      await say(alice, chat, "two"),
      await say(alice, chat, `three @${bob.username}`),
    ];
    return { chat_id: chat.id, one: one.seq, two: two.seq, three: three.seq };
  };

  test("returns the unread count, and updates the caller's own counts", async () => {
    const { chat_id, two } = await places();
    await using caller = await bob.via(transport);
    expect(await caller.call("readChat", { chat_id, seq: two })).toEqual({ unread_count: 1 });
    const chat = await bob.call("getChat", { chat_id });
    expect(chat).toMatchObject({
      unread_count: 1,
      unread: { human: 1, agent: 0, mentions: 1 },
      last_read_seq: two,
    });
    expect(chat.reads[bob.username]).toBe(two);
  });

  test("sends chatRead without at to the participants only", async () => {
    const { chat_id, two, three } = await places();
    await using caller = await bob.via(transport);
    await using own = await bob.connect();
    await using other = await alice.connect();
    await using outsider = await carol.connect();
    await caller.call("readChat", { chat_id, seq: two });
    const expected = {
      method: "events.chatRead",
      params: { conversation_id: chat_id, reader: bob.account, last_read_seq: two },
    } as const;
    // On several nodes, events of other conversations may still arrive.
    const isHere = (each: { conversation_id: string }) => each.conversation_id === chat_id;
    expect(await own.settledEvents("events.chatRead", isHere)).toEqual([expected]);
    expect(await other.settledEvents("events.chatRead", isHere)).toEqual([expected]);
    expect(await outsider.settledEvents("events.chatRead", isHere)).toEqual([]);
    expect((await alice.call("getChat", { chat_id })).seq).toBe(three);
  });

  test("never moves back, nor beyond the counter", async () => {
    const { chat_id, one, three } = await places();
    await using caller = await bob.via(transport);
    const beyond = await caller.call("readChat", { chat_id, seq: three + 1000 });
    expect(beyond).toEqual({ unread_count: 0 });
    expect(await caller.call("readChat", { chat_id, seq: one })).toEqual({ unread_count: 0 });
    expect((await bob.call("getChat", { chat_id })).last_read_seq).toBe(three);
    await say(alice, { id: chat_id }, "four");
    expect((await bob.call("getChat", { chat_id })).unread_count).toBe(1);
  });

  test("marks as read for the caller only", async () => {
    const chat = await groupOf(alice, bob, carol);
    const { seq } = await say(alice, chat, "hello");
    await using caller = await bob.via(transport);
    await caller.call("readChat", { chat_id: chat.id, seq });
    expect((await carol.call("getChat", { chat_id: chat.id })).unread_count).toBe(1);
  });

  test("refuses an invalid seq", async () => {
    const chat = await groupOf(alice);
    await using caller = await alice.via(transport);
    for (const seq of [-1, 1.5, 2 ** 60]) {
      const failed = await failure(caller.call("readChat", { chat_id: chat.id, seq }));
      expect(failed.parameters?.fields).toHaveProperty("seq");
    }
  });

  test("is 404 for an unknown conversation and 403 for one of other people", async () => {
    const chat = await groupOf(alice, bob);
    await using stranger = await carol.via(transport);
    const read = (chat_id: string) => failure(stranger.call("readChat", { chat_id, seq: 1 }));
    expect((await read(Bun.randomUUIDv7())).code).toBe("not_found");
    expect((await read(chat.id)).code).toBe("forbidden");
  });
});

test("only messages of others are unread: not reactions, edits, names or members", async () => {
  const chat = await groupOf(alice, bob);
  const { id: message_id, seq } = await say(alice, chat, "hello");
  await bob.call("readChat", { chat_id: chat.id, seq });
  await alice.call("editMessage", { message_id, content: "hello!" });
  await alice.call("addReaction", { message_id, emoji: "👍" });
  await alice.call("setChatTitle", { chat_id: chat.id, title: "new" });
  await alice.call("addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
  expect(await bob.call("getChat", { chat_id: chat.id })).toMatchObject({
    unread_count: 0,
    unread: { human: 0, agent: 0, mentions: 0 },
    seq: seq + 4,
  });
});

test("each durable change raises the counter by one, and everyone receives them in order", async () => {
  const chat = await groupOf(alice, bob);
  await using one = await alice.connect();
  await using two = await bob.connect();
  const { id: message_id } = await say(alice, chat, "created");
  await bob.call("setMessageReaction", { message_id, emoji: "👍" });
  await alice.call("editMessage", { message_id, content: "edited" });
  await alice.call("sendChatAction", { chat_id: chat.id, action: "typing" });
  await bob.call("setMessageReaction", { message_id, emoji: "👍" });
  await bob.call("readChat", { chat_id: chat.id, seq: chat.seq + 1 });
  await alice.call("setChatTitle", { chat_id: chat.id, title: "renamed" });
  await alice.call("addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
  await alice.call("removeChatMember", { chat_id: chat.id, username: carol.username });
  await alice.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [message_id] });
  await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message_id] });
  const expected = [
    "messageNew",
    "reactionAdded",
    "messageEdited",
    "reactionRemoved",
    "conversationUpdated",
    "conversationUpdated",
    "conversationUpdated",
    "messageDeleted",
  ];
  for (const socket of [one, two]) {
    await socket.settled();
    const counted = socket.events.filter(({ at }) => at !== undefined);
    expect(counted.map(({ method }) => method)).toEqual(
      expected.map((name) => `events.${name}` as never),
    );
    expect(counted.map(({ at }) => at)).toEqual(
      expected.map((_, index) => ({ conversation_id: chat.id, seq: chat.seq + 1 + index })),
    );
  }
  expect((await bob.call("getChat", { chat_id: chat.id })).seq).toBe(chat.seq + expected.length);
});
