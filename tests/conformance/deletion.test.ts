import { describe, expect, test } from "bun:test";
import { failure, groupOf, type Person, people, say, transports } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
/** A group of Alice's with Bob, and these messages. */
async function talk(...said: [Person, string][]) {
  const chat = await groupOf(alice, bob);
  const ids: string[] = [];
  for (const [person, content] of said) ids.push((await say(person, chat, content)).id);
  return { chat_id: chat.id, ids, id: (index: number) => ids[index] as string };
}

const contents = async (person: Person, chat_id: string) =>
  (await person.call("getChatHistory", { chat_id })).items.map(({ content }) => content);

const cannotSee = async (person: Person, message_id: string) =>
  expect((await failure(person.call("getMessage", { message_id }))).code).toBe("not_found");

describe.each(transports)("deleteMessages over %s", (transport) => {
  test("deletes a message for everyone", async () => {
    const { chat_id, id } = await talk([alice, "one"], [alice, "two"]);
    await using caller = await alice.via(transport);
    await caller.call("deleteMessages", { chat_id, message_ids: [id(1)] });
    for (const person of [alice, bob]) {
      expect(await contents(person, chat_id)).toEqual(["one"]);
      await cannotSee(person, id(1));
      const chat = await person.call("getChat", { chat_id });
      expect(chat.last_message?.id).toBe(id(0));
    }
  });

  test("is one change, announced to the participants only", async () => {
    const { chat_id, ids } = await talk([alice, "one"], [alice, "two"]);
    const { seq } = await alice.call("getChat", { chat_id });
    await using caller = await alice.via(transport);
    await using own = await alice.connect();
    await using reader = await bob.connect();
    await using outsider = await carol.connect();
    await caller.call("deleteMessages", { chat_id, message_ids: ids });
    const expected = {
      method: "events.messageDeleted",
      params: { conversation_id: chat_id, ids },
      at: { conversation_id: chat_id, seq: seq + 1 },
    } as const;
    expect(await own.settledEvents("events.messageDeleted")).toEqual([expected]);
    expect(await reader.settledEvents("events.messageDeleted")).toEqual([expected]);
    expect(await outsider.settledEvents("events.messageDeleted")).toEqual([]);
  });

  test("is allowed for the sender and the group's admin; otherwise nothing is deleted", async () => {
    const { chat_id, ids } = await talk([bob, "bob's"], [alice, "alice's"]);
    await using sender = await bob.via(transport);
    await using reader = await bob.connect();
    const both = sender.call("deleteMessages", { chat_id, message_ids: ids });
    expect((await failure(both)).code).toBe("forbidden");
    expect(await contents(bob, chat_id)).toEqual(["bob's", "alice's"]);
    expect(await reader.settledEvents("events.messageDeleted")).toEqual([]);
    await using admin = await alice.via(transport);
    await admin.call("deleteMessages", { chat_id, message_ids: ids });
    expect(await contents(bob, chat_id)).toEqual([]);
  });

  test("is allowed only for the sender in a direct conversation, whoever started it", async () => {
    const { id: chat_id } = await alice.call("startChat", { usernames: [bob.username] });
    const { id } = await say(bob, { id: chat_id }, "bob's");
    await using caller = await alice.via(transport);
    const failed = await failure(caller.call("deleteMessages", { chat_id, message_ids: [id] }));
    expect(failed.code).toBe("forbidden");
    expect((await bob.call("getMessage", { message_id: id })).content).toBe("bob's");
  });

  test("deletes nothing if one of the messages is not in the conversation", async () => {
    const [here, elsewhere] = [await talk([alice, "one"]), await talk([alice, "other"])];
    await using caller = await alice.via(transport);
    for (const wrong of [elsewhere.id(0), Bun.randomUUIDv7()]) {
      const input = { chat_id: here.chat_id, message_ids: [here.id(0), wrong] };
      expect((await failure(caller.call("deleteMessages", input))).code).toBe("not_found");
    }
    expect(await contents(alice, here.chat_id)).toEqual(["one"]);
    expect(await contents(alice, elsewhere.chat_id)).toEqual(["other"]);
  });

  test("emits no event for a message that was already deleted", async () => {
    const { chat_id, ids } = await talk([alice, "one"]);
    await using caller = await alice.via(transport);
    await caller.call("deleteMessages", { chat_id, message_ids: ids });
    const { seq } = await alice.call("getChat", { chat_id });
    await using reader = await bob.connect();
    await caller.call("deleteMessages", { chat_id, message_ids: ids });
    expect(await reader.settledEvents("events.messageDeleted")).toEqual([]);
    expect((await alice.call("getChat", { chat_id })).seq).toBe(seq);
  });

  test("removes the messages from the unread counts, mentions included", async () => {
    const { chat_id, id } = await talk([alice, `@${bob.username} one`], [alice, "two"]);
    await using caller = await alice.via(transport);
    await caller.call("deleteMessages", { chat_id, message_ids: [id(0)] });
    const { unread_count, unread } = await bob.call("getChat", { chat_id });
    expect({ unread_count, unread }).toEqual({
      unread_count: 1,
      unread: { human: 1, agent: 0, mentions: 0 },
    });
  });
});

describe.each(transports)("deleteMessagesForMe over %s", (transport) => {
  test("hides messages from the caller only", async () => {
    const { chat_id, id } = await talk([alice, "one"], [alice, "two"]);
    await using caller = await bob.via(transport);
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: [id(1)] });
    expect(await contents(bob, chat_id)).toEqual(["one"]);
    await cannotSee(bob, id(1));
    expect((await bob.call("getChat", { chat_id })).last_message?.id).toBe(id(0));
    expect(await contents(alice, chat_id)).toEqual(["one", "two"]);
    expect((await alice.call("getChat", { chat_id })).last_message?.id).toBe(id(1));
  });

  test("is announced to the caller's clients only, with the caller's own counter", async () => {
    const { chat_id, ids } = await talk([alice, "one"], [bob, "two"]);
    const { seq } = await alice.call("getChat", { chat_id });
    await using caller = await bob.via(transport);
    await using one = await bob.connect();
    await using two = await bob.connect();
    await using other = await alice.connect();
    const { own_seq } = await bob.call("getChat", { chat_id });
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: ids });
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: ids });
    const expected = {
      method: "events.messageDeleted",
      params: { conversation_id: chat_id, ids },
      own_seq: own_seq + 1,
    } as const;
    // On several nodes, events of earlier deletions may still arrive.
    const isHere = (each: { conversation_id: string }) => each.conversation_id === chat_id;
    for (const socket of [one, two]) {
      expect(await socket.settledEvents("events.messageDeleted", isHere)).toEqual([expected]);
    }
    expect(await other.settledEvents("events.messageDeleted", isHere)).toEqual([]);
    expect((await alice.call("getChat", { chat_id })).seq).toBe(seq);
  });

  test("is permanent: an edit or a reaction does not show the message again", async () => {
    const { chat_id, id } = await talk([alice, "one"]);
    await using caller = await bob.via(transport);
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: [id(0)] });
    await alice.call("editMessage", { message_id: id(0), content: "look" });
    await alice.call("addReaction", { message_id: id(0), emoji: "👍" });
    expect(await contents(bob, chat_id)).toEqual([]);
    const react = caller.call("addReaction", { message_id: id(0), emoji: "👍" });
    expect((await failure(react)).code).toBe("not_found");
  });

  test("removes the messages from the unread counts once", async () => {
    const { chat_id, ids } = await talk([alice, "one"], [alice, `two @${bob.username}`]);
    await using caller = await bob.via(transport);
    const unread = async () => (await bob.call("getChat", { chat_id })).unread;
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: ids.slice(1) });
    expect(await unread()).toEqual({ human: 1, agent: 0, mentions: 0 });
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: ids.slice(1) });
    expect(await unread()).toEqual({ human: 1, agent: 0, mentions: 0 });
    await alice.call("deleteMessages", { chat_id, message_ids: ids });
    expect(await unread()).toEqual({ human: 0, agent: 0, mentions: 0 });
  });

  test("ignores a mention that is edited into a hidden message", async () => {
    const { chat_id, id } = await talk([alice, "one"]);
    await using caller = await bob.via(transport);
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: [id(0)] });
    await alice.call("editMessage", { message_id: id(0), content: `@${bob.username} look` });
    expect((await bob.call("getChat", { chat_id })).unread.mentions).toBe(0);
  });

  test("does not change the unread counts for a message that was already deleted", async () => {
    const { chat_id, ids } = await talk([alice, "one"]);
    await alice.call("deleteMessages", { chat_id, message_ids: ids });
    await using caller = await bob.via(transport);
    // The call may succeed or fail; the counts must not change either way.
    await caller.call("deleteMessagesForMe", { chat_id, message_ids: ids }).catch(() => undefined);
    expect((await bob.call("getChat", { chat_id })).unread_count).toBe(0);
    await say(alice, { id: chat_id }, "two");
    expect((await bob.call("getChat", { chat_id })).unread_count).toBe(1);
  });

  test("hides nothing if one of the messages is not in the conversation", async () => {
    const [here, elsewhere] = [await talk([alice, "one"]), await talk([alice, "other"])];
    await using caller = await bob.via(transport);
    const input = { chat_id: here.chat_id, message_ids: [here.id(0), elsewhere.id(0)] };
    expect((await failure(caller.call("deleteMessagesForMe", input))).code).toBe("not_found");
    expect(await contents(bob, here.chat_id)).toEqual(["one"]);
  });
});

describe.each(["deleteMessages", "deleteMessagesForMe"] as const)("%s", (operation) => {
  test.each(transports)("takes 1 to 100 messages over %s", async (transport) => {
    const { chat_id } = await talk();
    await using caller = await alice.via(transport);
    const refused = async (count: number) => {
      const message_ids = Array.from({ length: count }, () => Bun.randomUUIDv7());
      return failure(caller.call(operation, { chat_id, message_ids }));
    };
    for (const count of [0, 101]) {
      const { code, parameters } = await refused(count);
      expect(code).toBe("bad_request");
      expect(parameters?.fields).toHaveProperty("message_ids");
    }
    expect((await refused(100)).code).toBe("not_found");
  });

  test.each(transports)(
    "is 404 for an unknown conversation and 403 for one of other people over %s",
    async (transport) => {
      const { chat_id, ids } = await talk([alice, "one"]);
      await using stranger = await carol.via(transport);
      const call = (id: string) =>
        failure(stranger.call(operation, { chat_id: id, message_ids: ids }));
      expect((await call(Bun.randomUUIDv7())).code).toBe("not_found");
      expect((await call(chat_id)).code).toBe("forbidden");
      expect(await contents(alice, chat_id)).toEqual(["one"]);
    },
  );
});
