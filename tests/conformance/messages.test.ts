import { describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import {
  failure,
  groupOf,
  people,
  say,
  TIMESTAMP,
  transports,
  UUID_V7,
} from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
const NOBODY = Bun.randomUUIDv7();

describe.each(transports)("sendMessage over %s", (transport) => {
  test("returns the complete message, with its seq", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    const message = await say(caller, chat, "hello");
    expect(message).toEqual({
      id: expect.stringMatching(UUID_V7),
      conversation_id: chat.id,
      seq: chat.seq + 1,
      version: chat.seq + 1,
      sender: { username: alice.username, kind: "human", display_name: alice.username, version: 0 },
      content: "hello",
      client_msg_id: null,
      reply_to_id: null,
      created_at: expect.stringMatching(TIMESTAMP),
      edited_at: null,
      finalized_at: expect.stringMatching(TIMESTAMP),
      reactions: [],
      mentions: [],
      turn: null,
      action: null,
      uses: [],
      tool_calls: [],
      files: [],
    });
  });

  test("sends messageNew with at to the participants only", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using sender = await alice.connect();
    await using reader = await bob.connect();
    await using outsider = await carol.connect();
    const message = await say(caller, chat, "hello");
    const expected = {
      method: "events.messageNew",
      params: message,
      at: { conversation_id: chat.id, seq: message.seq },
    };
    expect(await sender.settledEvents("events.messageNew")).toEqual([expected as never]);
    expect(await reader.settledEvents("events.messageNew")).toEqual([expected as never]);
    expect(await outsider.settledEvents("events.messageNew")).toEqual([]);
  });

  test("echoes client_msg_id in the result and in the event", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    const client_msg_id = "🙂".repeat(64);
    const message = await caller.call("sendMessage", {
      chat_id: chat.id,
      content: "hello",
      client_msg_id,
    });
    expect(message.client_msg_id).toBe(client_msg_id);
    const { params } = await reader.event("events.messageNew");
    expect(params.client_msg_id).toBe(client_msg_id);
  });

  test("creates one message for one client_msg_id, however often it is sent", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    const send = (content: string) =>
      caller.call("sendMessage", { chat_id: chat.id, content, client_msg_id: "one" });
    const first = await send("hello");
    expect(await send("hello again")).toEqual(first);
    expect(await reader.settledEvents("events.messageNew")).toHaveLength(1);
    const after = await bob.call("getChat", { chat_id: chat.id });
    expect({ seq: after.seq, unread: after.unread_count }).toEqual({ seq: first.seq, unread: 1 });
  });

  test("creates one message for one client_msg_id that is sent concurrently", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    const input = { chat_id: chat.id, content: "hello", client_msg_id: "at once" };
    const sent = await Promise.all(
      Array.from({ length: 8 }, () => caller.call("sendMessage", input)),
    );
    expect(new Set(sent.map(({ id }) => id)).size).toBe(1);
    const { items } = await alice.call("getChatHistory", { chat_id: chat.id });
    expect(items).toHaveLength(1);
  });

  test.each([
    ["deleted", "deleteMessages"],
    ["hidden", "deleteMessagesForMe"],
  ] as const)("returns the first message if its reply target was %s since", async (_, remove) => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    const target = await say(alice, chat, "question");
    const reply = { chat_id: chat.id, content: "answer", reply_to_id: target.id };
    const first = await caller.call("sendMessage", { ...reply, client_msg_id: "answer" });
    await alice.call(remove, { chat_id: chat.id, message_ids: [target.id] });
    expect(await caller.call("sendMessage", { ...reply, client_msg_id: "answer" })).toEqual(first);
    const failed = await failure(caller.call("sendMessage", { ...reply, client_msg_id: "new" }));
    expect(failed.code).toBe("not_found");
    expect((await failure(caller.call("sendMessage", reply))).code).toBe("not_found");
  });

  test("treats the same client_msg_id in another conversation as another message", async () => {
    const [one, other] = [await groupOf(alice, bob), await groupOf(alice, bob)];
    await using caller = await alice.via(transport);
    const send = (chat_id: string) =>
      caller.call("sendMessage", { chat_id, content: "hello", client_msg_id: "same" });
    const [first, second] = [await send(one.id), await send(other.id)];
    expect(second.id).not.toBe(first.id);
    expect(second.conversation_id).toBe(other.id);
  });

  test.each([
    ["no content", undefined],
    ["an empty content", ""],
    ["only white space", " \n\t\u00a0\u2003"],
    ["one byte too many", "a".repeat(32_769)],
    ["few characters with too many bytes", "🙂".repeat(8193)],
  ])("refuses %s", async (_, content) => {
    const chat = await groupOf(alice);
    await using caller = await alice.via(transport);
    const failed = await failure(caller.call("sendMessage", { chat_id: chat.id, content }));
    expect(failed.code).toBe("bad_request");
    expect(failed.parameters?.fields).toHaveProperty("content");
    expect((await alice.call("getChat", { chat_id: chat.id })).seq).toBe(chat.seq);
  });

  test.each([
    ["32,768 bytes of letters", "a".repeat(32_768)],
    ["32,768 bytes of emoji", "🙂".repeat(8192)],
    ["white space at its ends, line breaks and decomposed letters", "  e\u0301\r\n\tx\u200d  "],
  ])("stores %s byte for byte", async (_, content) => {
    const chat = await groupOf(alice);
    await using caller = await alice.via(transport);
    const { id } = await say(caller, chat, content);
    expect((await alice.call("getMessage", { message_id: id })).content === content).toBe(true);
  });

  test.each([
    ["an empty client_msg_id", ""],
    ["a client_msg_id of 65 letters", "a".repeat(65)],
    ["a client_msg_id of 65 emoji", "🙂".repeat(65)],
  ])("refuses %s", async (_, id) => {
    const chat = await groupOf(alice);
    await using caller = await alice.via(transport);
    const failed = await failure(
      caller.call("sendMessage", { chat_id: chat.id, content: "hello", client_msg_id: id }),
    );
    expect(failed.code).toBe("bad_request");
    expect(Object.keys(failed.parameters?.fields ?? {})).toEqual(["client_msg_id"]);
  });

  test("can reply only to a message of the same conversation", async () => {
    const [chat, other] = [await groupOf(alice, bob), await groupOf(alice, bob)];
    const [first, foreign] = [await say(bob, chat, "question"), await say(bob, other, "else")];
    await using caller = await alice.via(transport);
    const answer = (reply_to_id: string) =>
      caller.call("sendMessage", { chat_id: chat.id, content: "answer", reply_to_id });
    expect((await answer(first.id)).reply_to_id).toBe(first.id);
    expect((await failure(answer(foreign.id))).code).toBe("not_found");
    expect((await failure(answer(NOBODY))).code).toBe("not_found");
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [first.id] });
    expect((await failure(answer(first.id))).code).toBe("not_found");
  });

  test("is 404 for an unknown conversation and 403 for one of other people", async () => {
    const chat = await groupOf(alice);
    await using stranger = await carol.via(transport);
    const missing = await failure(say(stranger, { id: NOBODY }, "hello"));
    expect(missing.code).toBe("not_found");
    expect(missing.message).toStartWith("not found: ");
    expect((await failure(say(stranger, chat, "hello"))).code).toBe("forbidden");
    expect((await alice.call("getChat", { chat_id: chat.id })).seq).toBe(chat.seq);
  });

  test("marks the conversation as read up to the message, for the sender only", async () => {
    const chat = await groupOf(alice, bob);
    await say(bob, chat, `hi @${alice.username}`);
    await using caller = await alice.via(transport);
    const { seq } = await say(caller, chat, "hello");
    const mine = await alice.call("getChat", { chat_id: chat.id });
    expect(mine).toMatchObject({
      unread_count: 0,
      unread: { human: 0, agent: 0, mentions: 0 },
      last_read_seq: seq,
    });
    const theirs = await bob.call("getChat", { chat_id: chat.id });
    expect(theirs).toMatchObject({ unread_count: 1, last_read_seq: seq - 1 });
    expect(theirs.reads).toEqual({ [alice.username]: seq, [bob.username]: seq - 1 });
  });
});

test("everyone receives concurrent messages in the order of seq, without gaps", async () => {
  const chat = await groupOf(alice, bob, carol);
  await using one = await alice.connect();
  await using two = await bob.connect();
  const sends = [alice, one, bob, two, carol].flatMap((sender) =>
    Array.from({ length: 20 }, (_, n) => say(sender, chat, `message ${n}`)),
  );
  const sent = await Promise.all(sends);
  const seqs = sent.map(({ seq }) => seq).sort((a, b) => a - b);
  expect(seqs).toEqual(Array.from(sent, (_, index) => chat.seq + 1 + index));
  for (const socket of [one, two]) {
    const received = await socket.settledEvents("events.messageNew");
    expect(received.map(({ params }) => params.seq)).toEqual(seqs);
    expect(received.map(({ at }) => at?.seq)).toEqual(seqs);
  }
  const { items } = await carol.call("getChatHistory", { chat_id: chat.id, limit: 100 });
  expect(items.map(({ seq }) => seq)).toEqual(seqs);
});

describe("mentions", () => {
  const mentionsOf = async (content: string) => {
    const chat = await groupOf(alice, bob, { username: `${alice.username}:claude` });
    return (await say(alice, chat, content)).mentions;
  };

  test("name the participants whose handle is in the content, in any case", async () => {
    const found = await mentionsOf(
      `@${bob.username.toUpperCase()}, ask @${alice.username}:CLAUDE!`,
    );
    expect(found).toEqual([bob.username, `${alice.username}:claude`]);
  });

  test("count once, even if they are repeated", async () => {
    expect(await mentionsOf(`@${bob.username} @${bob.username}`)).toEqual([bob.username]);
  });

  test("need a word boundary on both sides", async () => {
    expect(await mentionsOf(`x@${bob.username} @${bob.username}x @@${bob.username}`)).toEqual([]);
  });

  test("do not count inside code", async () => {
    const handle = `@${bob.username}`;
    const content = `\`${handle}\` and \`\`a ${handle}\`\`\n\`\`\`\n${handle}\n\`\`\`\n~~~\n${handle}\n~~~`;
    expect(await mentionsOf(content)).toEqual([]);
  });

  test("do not name people who are not in the conversation", async () => {
    expect(await mentionsOf(`@${carol.username} @nobody_at_all`)).toEqual([]);
  });
});

describe.each(transports)("getMessage over %s", (transport) => {
  test("returns the message as each participant sees it", async () => {
    const chat = await groupOf(alice, bob);
    const sent = await say(alice, chat, "hello");
    await alice.call("addReaction", { message_id: sent.id, emoji: "👍" });
    await using caller = await bob.via(transport);
    const seen = await caller.call("getMessage", { message_id: sent.id });
    expect(seen).toEqual({
      ...sent,
      version: sent.seq + 1,
      reactions: [{ emoji: "👍", count: 1, reacted: false }],
    });
    const own = await alice.call("getMessage", { message_id: sent.id });
    expect(own.reactions).toEqual([{ emoji: "👍", count: 1, reacted: true }]);
  });

  test("accepts ids in upper case", async () => {
    const sent = await say(alice, await groupOf(alice), "hello");
    await using caller = await alice.via(transport);
    const seen = await caller.call("getMessage", { message_id: sent.id.toUpperCase() });
    expect(seen.id).toBe(sent.id);
  });

  test("is 404 for an unknown message and 403 for one of other people", async () => {
    const sent = await say(alice, await groupOf(alice), "hello");
    await using stranger = await carol.via(transport);
    const get = (message_id: string) => failure(stranger.call("getMessage", { message_id }));
    expect((await get(NOBODY)).code).toBe("not_found");
    expect((await get(sent.id)).code).toBe("forbidden");
  });
});

describe.each(transports)("editMessage over %s", (transport) => {
  const edited = (before: Message, content: string) => ({
    ...before,
    content,
    version: before.version + 1,
    edited_at: expect.stringMatching(TIMESTAMP),
  });

  test("changes the content and keeps the seq", async () => {
    const chat = await groupOf(alice, bob);
    const before = await say(alice, chat, "helo");
    await using caller = await alice.via(transport);
    const after = await caller.call("editMessage", { message_id: before.id, content: "hello" });
    expect(after).toEqual(edited(before, "hello"));
    expect(await bob.call("getMessage", { message_id: before.id })).toEqual(after);
  });

  test("sends messageEdited with at to the participants only", async () => {
    const chat = await groupOf(alice, bob);
    const before = await say(alice, chat, "helo");
    await using caller = await alice.via(transport);
    await using own = await alice.connect();
    await using reader = await bob.connect();
    await using outsider = await carol.connect();
    const after = await caller.call("editMessage", { message_id: before.id, content: "hello" });
    for (const socket of [own, reader]) {
      const [event, ...more] = await socket.settledEvents("events.messageEdited");
      expect(event?.params).toEqual(after);
      expect(event?.at).toEqual({ conversation_id: chat.id, seq: after.version });
      expect(more).toEqual([]);
    }
    expect(await outsider.settledEvents("events.messageEdited")).toEqual([]);
  });

  test("is allowed only for own messages, even for the admin", async () => {
    const chat = await groupOf(alice, bob);
    const theirs = await say(bob, chat, "mine");
    await using admin = await alice.via(transport);
    const edit = admin.call("editMessage", { message_id: theirs.id, content: "yours" });
    expect((await failure(edit)).code).toBe("forbidden");
    expect(await bob.call("getMessage", { message_id: theirs.id })).toEqual(theirs);
  });

  test("is 404 for an unknown message, and refuses empty content", async () => {
    const sent = await say(alice, await groupOf(alice), "hello");
    await using caller = await alice.via(transport);
    const edit = (message_id: string, content: string) =>
      failure(caller.call("editMessage", { message_id, content }));
    expect((await edit(NOBODY, "hello")).code).toBe("not_found");
    expect((await edit(sent.id, " ")).parameters?.fields).toHaveProperty("content");
  });

  test("is forbidden for a person who has left", async () => {
    const chat = await groupOf(alice, bob);
    const { id: message_id } = await say(bob, chat, "hello");
    await bob.call("leaveChat", { chat_id: chat.id });
    await using gone = await bob.via(transport);
    const failed = await failure(gone.call("editMessage", { message_id, content: "bye" }));
    expect(failed.code).toBe("forbidden");
  });

  test("updates unread mentions, and does not make the message unread again", async () => {
    const chat = await groupOf(alice, bob);
    const { id: message_id } = await say(alice, chat, "hello");
    await using caller = await alice.via(transport);
    const unread = async () => (await bob.call("getChat", { chat_id: chat.id })).unread;
    await caller.call("editMessage", { message_id, content: `hello @${bob.username}` });
    expect(await unread()).toEqual({ human: 1, agent: 0, mentions: 1 });
    await caller.call("editMessage", { message_id, content: "hello" });
    expect(await unread()).toEqual({ human: 1, agent: 0, mentions: 0 });
  });

  test("has reacted false in the event, and the caller's own in the result", async () => {
    const chat = await groupOf(alice, bob);
    const { id: message_id } = await say(alice, chat, "helo");
    await alice.call("addReaction", { message_id, emoji: "👍" });
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    const after = await caller.call("editMessage", { message_id, content: "hello" });
    expect(after.reactions).toEqual([{ emoji: "👍", count: 1, reacted: true }]);
    const { params } = await reader.event("events.messageEdited");
    expect(params.reactions).toEqual([{ emoji: "👍", count: 1, reacted: false }]);
  });
});
