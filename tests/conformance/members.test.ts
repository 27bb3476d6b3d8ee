import { describe, expect, test } from "bun:test";
import { failure, groupOf, type Person, people, say, transports } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
const agentOf = ({ username }: Person) => ({ username: `${username}:claude` });

/** On several nodes, changes of another test's group may arrive late. */
const isIn = (chat: { id: string }) => (changed: { id: string }) => changed.id === chat.id;

const members = async (person: Person, chat_id: string) =>
  (await person.call("getChat", { chat_id })).participants.map(({ username }) => username);

describe.each(transports)("setChatTitle over %s", (transport) => {
  test("renames a group for everyone", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    await using outsider = await carol.connect();
    const renamed = await caller.call("setChatTitle", { chat_id: chat.id, title: "  Plans  " });
    expect(renamed).toMatchObject({ id: chat.id, title: "Plans", seq: chat.seq + 1 });
    const { params, at } = await reader.event("events.conversationUpdated", isIn(chat));
    expect(params).toMatchObject({ id: chat.id, title: "Plans", seq: chat.seq + 1 });
    expect(at).toEqual({ conversation_id: chat.id, seq: chat.seq + 1 });
    expect(await outsider.settledEvents("events.conversationUpdated", isIn(chat))).toEqual([]);
    expect((await bob.call("getChat", { chat_id: chat.id })).title).toBe("Plans");
  });

  test.each(["", "   ", "a".repeat(129), "two\nlines"])("refuses the title %j", async (title) => {
    const chat = await groupOf(alice);
    await using caller = await alice.via(transport);
    const failed = await failure(caller.call("setChatTitle", { chat_id: chat.id, title }));
    expect(failed.parameters?.fields).toHaveProperty("title");
  });
});

describe.each(transports)("addChatMembers over %s", (transport) => {
  test("lets everyone in the group add people", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await bob.via(transport);
    const usernames = [carol.username, dave.username];
    const after = await caller.call("addChatMembers", { chat_id: chat.id, usernames });
    expect(after).toMatchObject({ participant_count: 4, seq: chat.seq + 1, admin: alice.username });
    expect(await members(alice, chat.id)).toEqual([
      alice.username,
      bob.username,
      carol.username,
      dave.username,
    ]);
  });

  test("sends the change to the others, and the conversation to the new members", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using old = await bob.connect();
    await using fresh = await carol.connect();
    await using outsider = await dave.connect();
    await caller.call("addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
    const at = { conversation_id: chat.id, seq: chat.seq + 1 };
    const updated = await old.event("events.conversationUpdated", isIn(chat));
    expect(updated.at).toEqual(at);
    expect(updated.params).toMatchObject({ participant_count: 3, seq: at.seq });
    const joined = await fresh.event("events.conversationNew", isIn(chat));
    expect(joined.at).toEqual(at);
    const { changes, ...shared } = updated.params;
    expect(joined.params).toEqual(shared);
    expect(changes).toMatchObject([{ kind: "added", seq: at.seq, subjects: [carol.account] }]);
    const { id } = await say(bob, chat, "welcome");
    expect((await fresh.event("events.messageNew")).params.id).toBe(id);
    expect(await old.settledEvents("events.conversationNew", isIn(chat))).toEqual([]);
    expect(await fresh.settledEvents("events.conversationUpdated", isIn(chat))).toEqual([]);
    expect(await outsider.settledButAccounts()).toHaveLength(1);
  });

  test("shows the whole history to a new member, who has nothing unread", async () => {
    const chat = await groupOf(alice, bob);
    const sent = await say(alice, chat, "before");
    await using caller = await alice.via(transport);
    await caller.call("addChatMembers", { chat_id: chat.id, usernames: [carol.username] });
    const { items } = await carol.call("getChatHistory", { chat_id: chat.id });
    expect(items).toEqual([sent]);
    expect((await carol.call("getChat", { chat_id: chat.id })).unread_count).toBe(0);
  });

  test("accepts agents from their owners only", async () => {
    const chat = await groupOf(alice, bob);
    await using owner = await bob.via(transport);
    await using other = await alice.via(transport);
    const input = { chat_id: chat.id, usernames: [agentOf(bob).username, carol.username] };
    expect((await failure(other.call("addChatMembers", input))).code).toBe("forbidden");
    expect(await members(alice, chat.id)).toEqual([alice.username, bob.username]);
    await owner.call("addChatMembers", input);
    expect(await members(alice, chat.id)).toContain(agentOf(bob).username);
  });

  test("is 404 and names the unknown usernames", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    const input = { chat_id: chat.id, usernames: [carol.username, "nobody_here"] };
    const failed = await failure(caller.call("addChatMembers", input));
    expect(failed.code).toBe("not_found");
    expect(failed.message).toContain("nobody_here");
    expect(await members(alice, chat.id)).not.toContain(carol.username);
  });

  test("changes nothing for a person who is already in the group", async () => {
    const chat = await groupOf(alice, bob);
    await using caller = await alice.via(transport);
    await using reader = await bob.connect();
    const input = { chat_id: chat.id, usernames: [bob.username] };
    const after = await caller.call("addChatMembers", input);
    expect(after).toMatchObject({ seq: chat.seq, participant_count: 2 });
    expect(await reader.settledButAccounts()).toHaveLength(1);
  });
});

describe.each(transports)("removeChatMember over %s", (transport) => {
  test("is allowed only for the admin", async () => {
    const chat = await groupOf(alice, bob, carol);
    await using member = await bob.via(transport);
    const remove = (username: string) => ({ chat_id: chat.id, username });
    for (const username of [alice.username, carol.username]) {
      const failed = await failure(member.call("removeChatMember", remove(username)));
      expect(failed.code).toBe("forbidden");
    }
    await using admin = await alice.via(transport);
    await admin.call("removeChatMember", remove(carol.username.toUpperCase()));
    expect(await members(alice, chat.id)).toEqual([alice.username, bob.username]);
  });

  test("notifies the others and the removed person, who then has no access and receives no events", async () => {
    const chat = await groupOf(alice, bob, carol);
    await using admin = await alice.via(transport);
    await using other = await bob.connect();
    await using removed = await carol.connect();
    await admin.call("removeChatMember", { chat_id: chat.id, username: carol.username });
    for (const socket of [other, removed]) {
      const { params, at } = await socket.event("events.conversationUpdated", isIn(chat));
      expect(at).toEqual({ conversation_id: chat.id, seq: chat.seq + 1 });
      expect(params.participants).toEqual([alice.account, bob.account]);
      expect(params.participant_count).toBe(2);
    }
    await say(alice, chat, "they have gone");
    expect(await removed.settledEvents("events.messageNew")).toEqual([]);
    const { items } = await carol.call("getChats", { limit: 100 });
    expect(items.map(({ id }) => id)).not.toContain(chat.id);
    const read = carol.call("getChatHistory", { chat_id: chat.id });
    expect((await failure(read)).code).toBe("forbidden");
  });

  test("removes the agents of the person too, and no others", async () => {
    const chat = await groupOf(alice, bob, agentOf(alice));
    await bob.call("addChatMembers", { chat_id: chat.id, usernames: [agentOf(bob).username] });
    await using admin = await alice.via(transport);
    await admin.call("removeChatMember", { chat_id: chat.id, username: bob.username });
    expect(await members(alice, chat.id)).toEqual([alice.username, agentOf(alice).username]);
  });

  test("lets the admin remove any agent without its owner", async () => {
    const chat = await groupOf(alice, bob);
    const { username } = agentOf(bob);
    await bob.call("addChatMembers", { chat_id: chat.id, usernames: [username] });
    await using admin = await alice.via(transport);
    await admin.call("removeChatMember", { chat_id: chat.id, username });
    expect(await members(alice, chat.id)).toEqual([alice.username, bob.username]);
  });

  test("is 404 for a person who is not in the group", async () => {
    const chat = await groupOf(alice, bob);
    await using admin = await alice.via(transport);
    for (const username of [carol.username, "nobody_here"]) {
      const failed = await failure(admin.call("removeChatMember", { chat_id: chat.id, username }));
      expect(failed.code).toBe("not_found");
    }
  });

  test("allows a person to be added again, who then receives events again", async () => {
    const chat = await groupOf(alice, bob);
    await using admin = await alice.via(transport);
    await using returning = await bob.connect();
    await admin.call("removeChatMember", { chat_id: chat.id, username: bob.username });
    await admin.call("addChatMembers", { chat_id: chat.id, usernames: [bob.username] });
    const sent = await say(alice, chat, "welcome back");
    expect((await returning.event("events.messageNew")).params.id).toBe(sent.id);
    expect((await bob.call("getChat", { chat_id: chat.id })).unread_count).toBe(1);
  });
});

describe.each(transports)("leaveChat over %s", (transport) => {
  test("removes the caller and their agents from the group", async () => {
    const chat = await groupOf(alice, bob);
    await bob.call("addChatMembers", { chat_id: chat.id, usernames: [agentOf(bob).username] });
    await using leaver = await bob.via(transport);
    await using other = await alice.connect();
    await leaver.call("leaveChat", { chat_id: chat.id });
    const { params, at } = await other.event("events.conversationUpdated", isIn(chat));
    expect(at).toEqual({ conversation_id: chat.id, seq: chat.seq + 2 });
    expect(params).toMatchObject({ participants: [alice.account], participant_count: 1 });
    expect((await failure(leaver.call("getChat", { chat_id: chat.id }))).code).toBe("forbidden");
    expect((await failure(leaver.call("leaveChat", { chat_id: chat.id }))).code).toBe("forbidden");
  });

  test("makes the longest-standing person the admin", async () => {
    const chat = await groupOf(alice, agentOf(alice), carol);
    await carol.call("addChatMembers", { chat_id: chat.id, usernames: [agentOf(carol).username] });
    await alice.call("addChatMembers", { chat_id: chat.id, usernames: [bob.username] });
    await using leaver = await alice.via(transport);
    await leaver.call("leaveChat", { chat_id: chat.id });
    expect(await bob.call("getChat", { chat_id: chat.id })).toMatchObject({
      admin: carol.username,
      created_by: alice.account,
      participant_count: 3,
    });
    await carol.call("removeChatMember", { chat_id: chat.id, username: bob.username });
    expect(await members(carol, chat.id)).toEqual([carol.username, agentOf(carol).username]);
  });

  test("lets the last person leave", async () => {
    const chat = await groupOf(alice);
    await using leaver = await alice.via(transport);
    await leaver.call("leaveChat", { chat_id: chat.id });
    expect((await failure(alice.call("getChat", { chat_id: chat.id }))).code).toBe("forbidden");
  });
});

describe.each(transports)("over %s, a change of a group", (transport) => {
  const changes = [
    ["setChatTitle", { title: "new" }],
    ["addChatMembers", { usernames: ["nobody"] }],
    ["removeChatMember", { username: "nobody" }],
    ["leaveChat", {}],
  ] as const;

  test.each(changes)("by %s is 400 on a direct conversation", async (operation, input) => {
    const { id: chat_id } = await alice.call("startChat", { usernames: [bob.username] });
    await using caller = await alice.via(transport);
    const failed = await failure(caller.call(operation, { ...input, chat_id } as never));
    expect(failed.code).toBe("bad_request");
  });

  test.each(changes)(
    "by %s is 404 for an unknown group and 403 for one of other people",
    async (operation, input) => {
      const chat = await groupOf(alice, bob);
      await using stranger = await carol.via(transport);
      const call = (chat_id: string) =>
        failure(stranger.call(operation, { ...input, chat_id } as never));
      expect((await call(Bun.randomUUIDv7())).code).toBe("not_found");
      expect((await call(chat.id)).code).toBe("forbidden");
      expect((await alice.call("getChat", { chat_id: chat.id })).seq).toBe(chat.seq);
    },
  );
});
