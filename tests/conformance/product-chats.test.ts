import { describe, expect, test } from "bun:test";
import type { InputOf } from "@parley/protocol";
import { Backend } from "@parley/testkit/backend.ts";
import { agentOf, failure, groupOf, Person, say, signUp } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const backend = new Backend(server.url);

type Chat = InputOf<"upsertChats">["chats"][number];

let count = 0;
const freshId = () => `order ${process.pid}-${++count}`;

async function upsert(chat: Chat) {
  const [item] = (await backend.call("upsertChats", { chats: [chat] })).items;
  if (!item) throw new Error("nothing was returned");
  return item;
}

/** Users of the product, with tokens of their own. */
const customers = (many: number) =>
  Promise.all(
    Array.from({ length: many }, async () => {
      const external_id = freshId();
      await backend.call("upsertUsers", { users: [{ external_id }] });
      const { access_token, account } = await backend.call("issueToken", { external_id });
      const person = new Person(server.url, access_token, account);
      return Object.assign(person, { id: `id:${external_id}` });
    }),
  ) as Promise<[Person & { id: string }, Person & { id: string }, Person & { id: string }]>;

const namesIn = ({ participants }: { participants: readonly { username: string }[] }) =>
  participants.map(({ username }) => username).toSorted();
const names = (...people: readonly { username: string }[]) => namesIn({ participants: people });

describe("upsertChats", () => {
  test("creates a group without an admin, and shows it to its members", async () => {
    const [ada, ben] = await customers(2);
    await using socket = await ben.connect();
    const external_id = freshId();
    const metadata = { order: 17, lines: [{ sku: "a" }] };
    const members = [ada.id, ben.username, agentOf(ada)];
    const { chat, created } = await upsert({ external_id, title: "Order 17", members, metadata });
    expect(created).toBe(true);
    expect(chat).toMatchObject({ kind: "group", title: "Order 17", admin: null, external_id });
    expect(namesIn(chat)).toEqual(names(ada, ben, { username: agentOf(ada) }));
    const { params } = await socket.event("events.conversationNew");
    expect(params).toEqual(chat);
    const seen = await ada.call("getChat", { chat_id: chat.id });
    expect(seen).toMatchObject({ external_id, metadata });
  });

  test("is idempotent, and changes only what is given", async () => {
    const [ada, ben, cara] = await customers(3);
    const external_id = freshId();
    const whole = { external_id, title: "One", members: [ada.id, ben.id], metadata: { a: 1 } };
    const first = await upsert(whole);
    await using socket = await ada.connect();
    expect(await upsert(whole)).toEqual({ ...first, created: false });
    expect(await upsert({ external_id })).toEqual({ ...first, created: false });
    expect(await socket.settledEvents("events.conversationUpdated")).toEqual([]);

    const renamed = await upsert({ external_id, title: "Two", metadata: { a: { b: null } } });
    expect(renamed.chat).toMatchObject({ title: "Two", metadata: { a: { b: null } } });
    const { params } = await socket.event("events.conversationUpdated");
    expect(params.changes.map(({ kind }) => kind)).toEqual(["renamed", "metadata_changed"]);
    expect(params.metadata).toEqual({ a: { b: null } });

    await using removed = await ben.connect();
    const moved = await upsert({ external_id, members: [ada.id, cara.id] });
    expect(namesIn(moved.chat)).toEqual(names(ada, cara));
    expect(moved.chat).toMatchObject({ title: "Two", metadata: { a: { b: null } } });
    await removed.event("events.conversationUpdated", ({ changes }) =>
      changes.some(({ kind }) => kind === "left"),
    );
    expect((await failure(say(ben, moved.chat, "hello"))).code).toBe("forbidden");
    expect(await say(cara, moved.chat, "hello")).toMatchObject({ content: "hello" });
  });

  test("keeps the agents of those who stay, and takes those of others along", async () => {
    const [ada, ben] = await customers(2);
    const external_id = freshId();
    const { chat } = await upsert({ external_id, members: [ada.id, ben.id] });
    for (const person of [ada, ben]) {
      const agent_username = agentOf(person);
      await person.call("addGroupAgent", { chat_id: chat.id, agent_username });
    }
    const after = await upsert({ external_id, members: [ada.id] });
    expect(namesIn(after.chat)).toEqual(names(ada, { username: agentOf(ada) }));
  });

  test("creates one group for concurrent calls", async () => {
    const [ada] = await customers(1);
    const chat = { external_id: freshId(), members: [ada.id] };
    const items = await Promise.all(Array.from({ length: 4 }, () => upsert(chat)));
    expect(new Set(items.map(({ chat: { id } }) => id)).size).toBe(1);
    expect(items.filter(({ created }) => created)).toHaveLength(1);
  });

  test("does not bring back somebody who left for good", async () => {
    const [ada, ben] = await customers(2);
    const whole = { external_id: freshId(), members: [ada.id, ben.id] };
    const { chat } = await upsert(whole);
    await ben.call("leaveChat", { chat_id: chat.id, final: true });
    expect(namesIn((await upsert(whole)).chat)).toEqual(names(ada));
  });

  test("stores all groups or none, and names what is wrong", async () => {
    const [ada, ben] = await customers(2);
    const good = { external_id: freshId(), members: [ada.id] };
    const problems = async (...chats: unknown[]) => {
      const { body } = await backend.post("upsertChats", { chats });
      return body.ok ? "ok" : body.parameters?.fields;
    };
    const bad = (chat: object) => problems(good, { external_id: freshId(), ...chat });
    expect(await bad({})).toEqual({ "chats.1.members": "is required for a new group" });
    expect(await bad({ members: [ada.id, "id:nobody"] })).toEqual({
      "chats.1.members.1": "names nobody",
    });
    expect(await bad({ members: [ada.id, agentOf(ben)] })).toEqual({
      "chats.1.members.1": "is an agent without its owner",
    });
    expect(await problems(good, good)).toEqual({ "chats.1.external_id": "is repeated" });
    expect(await bad({ members: [ada.id], metadata: { text: "x".repeat(4096) } })).toEqual({
      "chats.1.metadata": "must have at most 4096 bytes as JSON",
    });
    let deep: object = {};
    for (let level = 0; level < 20_000; level++) deep = { deep };
    for (const metadata of [deep, { text: "\0" }, { "\0": 1 }, { list: ["\ud800"] }]) {
      expect(Object.keys((await bad({ members: [ada.id], metadata })) ?? {})).toHaveLength(1);
    }
    expect((await upsert(good)).created).toBe(true);
  });
});

describe("metadata of a message", () => {
  test("that a service key sends for a person reaches all participants", async () => {
    const [ada, ben] = await customers(2);
    const chat = await groupOf(ada, ben);
    await using socket = await ben.connect();
    const metadata = { kind: "shipped", parcel: { no: 4711 } };
    const as = backend.as(ada.id);
    const message = { chat_id: chat.id, content: "It is on its way.", metadata };
    const sent = await as.call("sendMessage", message);
    expect(sent.metadata).toEqual(metadata);
    const { params } = await socket.event("events.messageNew");
    expect(params.metadata).toEqual(metadata);
    const { items } = await ben.call("getChatHistory", { chat_id: chat.id });
    expect(items).toEqual([sent]);
    const edited = await ada.call("editMessage", { message_id: sent.id, content: "It is late." });
    expect(edited.metadata).toEqual(metadata);
  });

  test("is forbidden to people themselves", async () => {
    const ada = await signUp(server.url);
    const chat = await groupOf(ada);
    const message = { chat_id: chat.id, content: "hello", metadata: { kind: "shipped" } };
    expect((await failure(ada.call("sendMessage", message))).code).toBe("forbidden");
  });

  test("can be imported", async () => {
    const [ada] = await customers(1);
    const chat = await groupOf(ada);
    const message = {
      sender: ada.id,
      content: "old",
      created_at: "2024-05-01T09:30:00.000Z",
      client_msg_id: "old-1",
      metadata: { source: "mail" },
    };
    await backend.call("importMessages", { chat_id: chat.id, messages: [message] });
    const { items } = await ada.call("getChatHistory", { chat_id: chat.id });
    expect(items).toMatchObject([{ content: "old", metadata: { source: "mail" } }]);
  });
});
