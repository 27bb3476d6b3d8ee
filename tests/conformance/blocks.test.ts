import { describe, expect, test } from "bun:test";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  type Person,
  pagesOf,
  people,
  say,
  transports,
} from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const directOf = (one: Pick<Person, "call">, { username }: Person) =>
  one.call("startChat", { usernames: [username] });
const block = (one: Pick<Person, "call">, { username }: Person) =>
  one.call("blockUser", { username });
const refusal = async (call: Promise<unknown>) => (await failure(call)).message;

const CANNOT_WRITE = "forbidden: you cannot write to this person";
const OWN_BLOCK = "forbidden: you have blocked this person: unblock them to write";

describe.each(transports)("over %s", (transport) => {
  test("blockUser with leave_groups also leaves the person's groups in which one has never written", async () => {
    const [alice, mallory, carol] = await people(server.url, "alice", "mallory", "carol");
    const forced = [await groupOf(mallory, alice), await groupOf(mallory, alice, carol)];
    const answered = await groupOf(mallory, alice);
    await say(alice, answered, "hello");
    const others = await groupOf(carol, alice, mallory);
    await using caller = await alice.via(transport);
    const { username } = mallory;
    const left = await caller.call("blockUser", { username, leave_groups: true });
    expect(left).toEqual({ groups_left: 2, has_more: false });
    const { items } = await alice.call("getChats");
    expect(items.map(({ id }) => id).toSorted()).toEqual([answered.id, others.id].toSorted());
    for (const { id } of forced) {
      const { participants } = await mallory.call("getChat", { chat_id: id });
      expect(participants.map((each) => each.username)).not.toContain(alice.username);
    }
    expect((await alice.call("getBlocked")).items).toEqual([mallory.account]);
    expect(await caller.call("blockUser", { username, leave_groups: true })).toEqual({
      groups_left: 0,
      has_more: false,
    });
    expect(await caller.call("blockUser", { username })).toBeUndefined();
  });

  test("blockUser, unblockUser and getBlocked keep a list of one's own", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    await using caller = await alice.via(transport);
    await block(caller, carol);
    await block(caller, bob);
    await block(caller, bob);
    const pages = await pagesOf((place) => caller.call("getBlocked", { limit: 1, ...place }));
    expect(pages).toEqual([[bob.account], [carol.account]]);
    await caller.call("unblockUser", { username: bob.username });
    await caller.call("unblockUser", { username: bob.username });
    expect((await caller.call("getBlocked")).items).toEqual([carol.account]);
    expect((await bob.call("getBlocked")).items).toEqual([]);
  });

  test("only other people can be blocked", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await using caller = await alice.via(transport);
    for (const operation of ["blockUser", "unblockUser"] as const) {
      const call = (username: string) => refusal(caller.call(operation, { username }));
      expect(await call("nobody_here")).toBe("not found: user nobody_here");
      expect(await call(agentOf(bob))).toBe(
        "bad request: username is not a person: name its owner",
      );
    }
    expect(await refusal(block(caller, alice))).toBe("bad request: username is your own");
  });

  test("nobody writes in the direct conversation of two people of whom one blocked the other", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await using blocked = await bob.via(transport);
    await using blocker = await alice.via(transport);
    const chat = await directOf(bob, alice);
    const chat_id = chat.id;
    const message = await say(bob, chat, "hello");
    const message_id = message.id;
    const other = await say(alice, chat, "hello to you");
    await blocked.call("addReaction", { message_id: other.id, emoji: "👍" });
    await block(blocker, bob);
    expect(await refusal(say(blocked, chat, "again"))).toBe(CANNOT_WRITE);
    expect(await refusal(say(blocker, chat, "again"))).toBe(OWN_BLOCK);
    for (const call of [
      () => blocked.call("editMessage", { message_id, content: "edited" }),
      () => blocked.call("addReaction", { message_id, emoji: "👍" }),
      () => blocked.call("setMessageReaction", { message_id, emoji: "👍" }),
      () => blocked.call("sendChatAction", { chat_id, action: "typing" }),
      () => blocked.call("sendComponentAction", { chat_id, message_id, action: "x" }),
    ]) {
      expect(await refusal(call())).toBe(CANNOT_WRITE);
    }
    // What takes something back still works, and both can read.
    await blocked.call("sendChatAction", { chat_id, action: "cancel" });
    await blocked.call("removeReaction", { message_id: other.id, emoji: "👍" });
    await blocked.call("deleteMessages", { chat_id, message_ids: [message_id] });
    expect((await blocked.call("getChatHistory", { chat_id })).items).toHaveLength(1);
    expect(await directOf(blocked, alice)).toMatchObject({ id: chat_id });
    await blocker.call("unblockUser", { username: bob.username });
    await say(blocked, chat, "again");
  });

  test("somebody who is blocked cannot start a conversation or add the blocker to a group", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    await using blocked = await bob.via(transport);
    await block(alice, bob);
    const group = await groupOf(bob, carol);
    const usernames = [carol.username, alice.username];
    for (const call of [
      () => directOf(blocked, alice),
      () => blocked.call("startChat", { usernames, kind: "group" }),
      () => blocked.call("addChatMembers", { chat_id: group.id, usernames }),
    ]) {
      expect(await refusal(call())).toBe(`forbidden: you cannot add ${alice.username}`);
    }
    expect(await refusal(directOf(alice, bob))).toBe(
      `forbidden: you have blocked ${bob.username}: unblock them to write`,
    );
    // Others still can, and the two may share groups.
    await carol.call("addChatMembers", { chat_id: group.id, usernames: [alice.username] });
    await say(blocked, group, "hello all");
    await groupOf(alice, bob);
  });

  test("a mention of somebody who blocked the sender is none", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    await using blocked = await bob.via(transport);
    const group = await groupOf(alice, bob, carol);
    await block(alice, bob);
    const content = `@${alice.username} @${carol.username}`;
    const message = await say(blocked, group, content);
    expect(message.mentions).toEqual([carol.username]);
    const edited = await blocked.call("editMessage", { message_id: message.id, content });
    expect(edited.mentions).toEqual([carol.username]);
    const chat_id = group.id;
    expect((await alice.call("getChat", { chat_id })).unread).toMatchObject({ mentions: 0 });
    expect((await carol.call("getChat", { chat_id })).unread).toMatchObject({ mentions: 1 });
    expect((await say(carol, group, content)).mentions).toContain(alice.username);
  });

  test("messages of somebody whom one blocked, and of their agents, are not unread", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    const { id: chat_id } = await groupOf(carol, alice, bob);
    const group = { id: chat_id };
    await bob.call("addGroupAgent", { chat_id, agent_username: agentOf(bob) });
    const counts = async () => {
      const { unread, unread_count, seq } = await alice.call("getChat", { chat_id });
      const { items } = await alice.call("getChats");
      expect(items.find(({ id }) => id === chat_id)).toMatchObject({ unread, unread_count });
      const { unread_count: left } = await alice.call("readChat", { chat_id, seq: 1 });
      expect([left, seq > 1]).toEqual([unread_count, true]);
      return unread;
    };
    await using reader = await carol.connect();
    const asked = await say(bob, group, `@${alice.username} @${agentOf(bob)} before`);
    await answerTo(reader, asked);
    await say(carol, group, "hello");
    expect(await counts()).toEqual({ human: 2, agent: 1, mentions: 1 });
    await block(alice, bob);
    expect(await counts()).toEqual({ human: 1, agent: 0, mentions: 0 });
    const later = await say(bob, group, "after");
    expect(await counts()).toEqual({ human: 1, agent: 0, mentions: 0 });
    await alice.call("deleteMessagesForMe", { chat_id, message_ids: [later.id] });
    expect(await counts()).toEqual({ human: 1, agent: 0, mentions: 0 });
    await alice.call("unblockUser", { username: bob.username });
    expect(await counts()).toEqual({ human: 2, agent: 1, mentions: 1 });
  });

  test("the block list reaches the person's own clients, and nobody else", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await using caller = await alice.via(transport);
    await using own = await alice.connect();
    await using other = await bob.connect();
    const own_since = (await overview(alice, {})).own_seq;
    await block(caller, bob);
    const usernames = [bob.username];
    const { own_seq } = await own.event("events.blocksUpdated");
    expect(own.eventsNamed("events.blocksUpdated")).toMatchObject([{ params: { usernames } }]);
    expect(own_seq).toBe(own_since + 1);
    expect(await overview(alice, { own_since })).toMatchObject({
      own_seq: own_since + 1,
      blocked: { usernames, own_seq: own_since + 1 },
    });
    await caller.call("unblockUser", { username: bob.username });
    await own.event("events.blocksUpdated", (params) => params.usernames.length === 0);
    expect((await overview(alice, {})).blocked).toEqual({ usernames: [], own_seq: own_since + 2 });
    await other.call("getMe");
    expect(other.eventsNamed("events.blocksUpdated")).toEqual([]);
  });

  test("whoever leaves a group for good cannot be added again", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    await using leaving = await bob.via(transport);
    const chat_id = (await groupOf(alice, bob, carol)).id;
    const add = (...others: Person[]) =>
      alice.call("addChatMembers", { chat_id, usernames: others.map((each) => each.username) });
    await leaving.call("leaveChat", { chat_id });
    await add(bob);
    await leaving.call("leaveChat", { chat_id, final: true });
    await carol.call("leaveChat", { chat_id, final: false });
    expect(await refusal(add(bob, carol))).toBe(
      `forbidden: ${bob.username} left this group for good`,
    );
    await add(carol);
    await groupOf(alice, bob);
    const direct = await directOf(alice, bob);
    const left = leaving.call("leaveChat", { chat_id: direct.id, final: true });
    expect((await failure(left)).code).toBe("bad_request");
  });

  test("whoever has left a group, or was removed, can still leave it for good", async () => {
    const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
    const chat_id = (await groupOf(alice, bob, carol)).id;
    const add = (...others: Person[]) =>
      alice.call("addChatMembers", { chat_id, usernames: others.map((each) => each.username) });
    await bob.call("leaveChat", { chat_id });
    await alice.call("removeChatMember", { chat_id, username: carol.username });
    for (const former of [bob, carol]) {
      await using caller = await former.via(transport);
      expect((await failure(caller.call("leaveChat", { chat_id }))).code).toBe("forbidden");
      for (const _ of ["first", "again"]) await caller.call("leaveChat", { chat_id, final: true });
      expect(await refusal(add(former))).toBe(
        `forbidden: ${former.username} left this group for good`,
      );
    }
    await using stranger = await dave.via(transport);
    const leave = () => stranger.call("leaveChat", { chat_id, final: true });
    expect(await refusal(leave())).toBe(
      "forbidden: you are not a participant of this conversation",
    );
    await add(dave);
    await leave();
  });

  test("added_by known lets only those add a person with whom they have written", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    await using choosy = await alice.via(transport);
    const known = { ...alice.account, added_by: "known", presence: "visible" } as const;
    expect(await choosy.call("updateMe", { added_by: "known" })).toEqual(known);
    expect(await choosy.call("getMe")).toMatchObject(known);
    expect(await bob.call("getUser", { username: alice.username })).toEqual(alice.account);
    const refused = `forbidden: you cannot add ${alice.username}`;
    expect(await refusal(directOf(bob, alice))).toBe(refused);
    expect(await refusal(groupOf(bob, alice))).toBe(refused);
    const chat = await directOf(alice, bob);
    await say(bob, chat, "hello");
    expect(await refusal(groupOf(bob, alice))).toBe(refused);
    await say(alice, chat, "hello");
    await groupOf(bob, alice);
    expect(await refusal(groupOf(carol, alice))).toBe(refused);
    const renamed = await choosy.call("updateMe", { display_name: "Alice" });
    expect(renamed).toMatchObject({ display_name: "Alice", added_by: "known" });
    const changed = await choosy.call("updateMe", { added_by: "everyone", display_name: "Al" });
    expect(changed).toMatchObject({ display_name: "Al" });
    expect(changed).not.toHaveProperty("added_by");
    expect(await choosy.call("getMe")).toMatchObject(changed);
    await groupOf(carol, alice);
    const nothing = await failure(choosy.call("updateMe", {}));
    expect(nothing.parameters?.fields).toEqual({
      display_name: "is required, unless added_by or presence is given",
    });
  });
});

test("agents do not answer people whom their owner blocked", async () => {
  const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
  await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  const group = await groupOf(alice, bob, carol);
  const chat_id = group.id;
  const agent = agentOf(alice);
  await alice.call("addGroupAgent", { chat_id, agent_username: agent, always_on: true });
  await block(alice, bob);
  await using socket = await carol.connect();
  const ignored = await say(bob, group, `@${agent} hello`);
  const answered = await say(carol, group, "hello");
  await answerTo(socket, answered);
  const { items } = await carol.call("getChatHistory", { chat_id });
  expect(items.map(({ turn }) => turn?.triggered_by)).not.toContain(ignored.id);
});

test("people whom an agent's owner blocked cannot have old messages answered again", async () => {
  const [alice, bob] = await people(server.url, "alice", "bob");
  await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  const group = await groupOf(alice, bob);
  const agent = agentOf(alice);
  await alice.call("addGroupAgent", { chat_id: group.id, agent_username: agent });
  await using socket = await alice.connect();
  const asked = await say(bob, group, `@${agent} hello`);
  const { id: message_id } = await answerTo(socket, asked);
  await block(alice, bob);
  await bob.call("editMessage", { message_id: asked.id, content: `@${agent} something else` });
  const refused = await failure(bob.call("retryAgentTurn", { message_id }));
  expect(refused).toMatchObject({
    code: "forbidden",
    message: "forbidden: you cannot ask this agent",
  });
  await alice.call("unblockUser", { username: bob.username });
  expect(await bob.call("retryAgentTurn", { message_id })).toBeUndefined();
});

async function overview(person: Pick<Person, "call">, input: { own_since?: number }) {
  const page = await person.call("getUpdates", { known: {}, ...input });
  if (!("gone" in page)) throw new Error("getUpdates did not return an overview");
  return page;
}
