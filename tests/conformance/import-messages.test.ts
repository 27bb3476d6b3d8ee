import { afterAll, describe, expect, test } from "bun:test";
import type { InputOf } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  people,
  say,
  search,
} from "@parley/testkit/client.ts";
import { startReceiver } from "@parley/testkit/receiver.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_PRIVATE_ADDRESSES: "allow",
});
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");

type Past = InputOf<"importMessages">["messages"][number];

const past = (sender: { username: string }, n: number, more: Partial<Past> = {}): Past => ({
  sender: sender.username,
  content: `past ${n}`,
  created_at: new Date(Date.UTC(2024, 4, 1, 9, n)).toISOString(),
  client_msg_id: `${n}`,
  ...more,
});

const importTo = async ({ id }: { id: string }, ...messages: Past[]) =>
  (await backend.call("importMessages", { chat_id: id, messages })).items;

const historyOf = async ({ id }: { id: string }) =>
  (await bob.call("getChatHistory", { chat_id: id })).items;

describe("importMessages", () => {
  test("stores messages with their senders and times, in the given order", async () => {
    const chat = await groupOf(alice, bob);
    const items = await importTo(chat, past(alice, 3), past(bob, 1), past(alice, 2));
    const history = await historyOf(chat);
    expect(items).toEqual(
      history.map(({ id, client_msg_id }) => ({
        message_id: id,
        client_msg_id: client_msg_id ?? "",
        created: true,
      })),
    );
    expect(
      history.map(({ content, sender, created_at }) => [content, sender.username, created_at]),
    ).toEqual([
      ["past 3", alice.username, "2024-05-01T09:03:00.000Z"],
      ["past 1", bob.username, "2024-05-01T09:01:00.000Z"],
      ["past 2", alice.username, "2024-05-01T09:02:00.000Z"],
    ]);
    expect(history.every(({ imported }) => imported === true)).toBe(true);
    const { updated_at, last_message } = await bob.call("getChat", { chat_id: chat.id });
    expect([updated_at, last_message?.content]).toEqual(["2024-05-01T09:03:00.000Z", "past 2"]);
  });

  test("does not move a conversation down in the list", async () => {
    const [first, second] = [await groupOf(alice, bob), await groupOf(alice, bob)];
    await say(alice, second, "hello");
    const { created_at } = await say(alice, first, "hello");
    await importTo(first, past(alice, 1), past(bob, 2));
    const { items } = await bob.call("getChats", { limit: 2 });
    expect(items.map(({ id }) => id)).toEqual([first.id, second.id]);
    expect(items[0]?.updated_at).toBe(created_at);
    const updates = await bob.call("getUpdates", { chat_id: first.id, since_seq: 0 });
    expect(updates).toMatchObject({ conversation: { updated_at: created_at } });
  });

  test("stores agents' messages, and those of people named by their ids in the product", async () => {
    const external_id = crypto.randomUUID();
    const { items } = await backend.call("upsertUsers", { users: [{ external_id }] });
    const username = items[0]?.account.username ?? "";
    const chat = await groupOf(alice, bob, { username });
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(alice) });
    const agent = { username: agentOf(alice) };
    await importTo(chat, past(agent, 1), past({ username: `id:${external_id}` }, 2));
    const history = await historyOf(chat);
    expect(history.map(({ sender, turn }) => [sender.username, sender.kind, turn])).toEqual([
      [agent.username, "agent", null],
      [username, "human", null],
    ]);
  });

  test("notifies nobody: clients receive the messages, which count as read", async () => {
    const chat = await groupOf(alice, bob);
    await say(alice, chat, "unread");
    await using socket = await bob.connect();
    const mention = { content: `look, @${bob.username}` };
    const [first, second] = await importTo(chat, past(alice, 1, mention), past(bob, 2));
    const seen = await socket.event("events.messageNew", ({ id }) => id === first?.message_id);
    expect(seen).toMatchObject({
      params: { imported: true, mentions: [bob.username] },
      at: { conversation_id: chat.id, seq: 2 },
    });
    await socket.event("events.messageNew", ({ id }) => id === second?.message_id);
    const { unread, last_read_seq } = await bob.call("getChat", { chat_id: chat.id });
    expect({ unread, last_read_seq }).toEqual({
      unread: { human: 1, agent: 0, mentions: 0 },
      last_read_seq: 0,
    });
  });

  test("starts no agent, which sees the messages in its next turn", async () => {
    const chat = await groupOf(alice, bob);
    const agent_username = agentOf(alice);
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username, always_on: true });
    await using socket = await alice.connect();
    const [item] = await importTo(chat, past(alice, 1, { content: `@${agent_username} hello` }));
    const trigger = await say(alice, chat, "hello");
    const { id } = await answerTo(socket, trigger);
    const history = await historyOf(chat);
    expect(history.map(({ turn }) => turn?.triggered_by ?? null)).toEqual([null, null, trigger.id]);
    const { context_ids: context } = await alice.call("getTurn", { message_id: id });
    expect(context).toContain(item?.message_id ?? "");
  });

  test("is idempotent by sender and client_msg_id, as sends are", async () => {
    const chat = await groupOf(alice, bob);
    const sent = await alice.call("sendMessage", {
      chat_id: chat.id,
      content: "sent",
      client_msg_id: "1",
    });
    const batch = [past(alice, 1), past(bob, 1), past(bob, 1), past(alice, 2)];
    const first = await importTo(chat, ...batch);
    expect(first.map(({ created }) => created)).toEqual([false, true, false, true]);
    expect(first[0]?.message_id).toBe(sent.id);
    expect(first[2]?.message_id).toBe(first[1]?.message_id ?? "");
    await alice.call("deleteMessages", {
      chat_id: chat.id,
      message_ids: [first[3]?.message_id ?? ""],
    });
    expect(await importTo(chat, ...batch)).toEqual(
      first.map((item) => ({ ...item, created: false })),
    );
    expect((await historyOf(chat)).map(({ content }) => content)).toEqual(["sent", "past 1"]);
  });

  test("500 messages at once are found by search and by getUpdates", async () => {
    const chat = await groupOf(alice, bob);
    const word = `needle${Date.now()}`;
    const messages = Array.from({ length: 500 }, (_, n) =>
      past(n % 2 === 0 ? alice : bob, n, { content: n === 77 ? `a ${word}` : `past ${n}` }),
    );
    const items = await importTo(chat, ...messages);
    expect(items.filter(({ created }) => created)).toHaveLength(500);
    const found = await search(bob, { query: word });
    expect(found.items.map(({ message }) => message.id)).toEqual([items[77]?.message_id ?? ""]);
    const updates = await bob.call("getUpdates", { chat_id: chat.id, since_seq: 0 });
    expect(updates).toMatchObject({ has_more: true, conversation: { seq: 500, unread_count: 0 } });
  });

  test("is delivered to no webhook; a later edit is", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(alice, bob);
    const { id: webhook_id } = await backend.call("createWebhook", {
      url: receiver.url,
      events: [],
      chat_id: chat.id,
    });
    const [item] = await importTo(chat, past(alice, 1), past(bob, 2));
    const message_id = item?.message_id ?? "";
    await alice.call("editMessage", { message_id, content: "edited" });
    await until(() => receiver.received.length > 0, "the edit is delivered");
    expect(receiver.received.map(({ data }) => data.method)).toEqual(["events.messageEdited"]);
    await backend.call("deleteWebhook", { webhook_id });
  });

  test("is an entry of the audit log, without content", async () => {
    const chat = await groupOf(alice, bob);
    await importTo(chat, past(alice, 1), past(bob, 2));
    await importTo(chat, past(alice, 1));
    const { items } = await backend.call("getAuditLog", { action: "messages_imported", limit: 1 });
    expect(items[0]).toMatchObject({
      account: null,
      service_key: "(PARLEY_SERVICE_KEY_FILE)",
      details: { conversation: chat.id, messages: 2 },
    });
    expect(JSON.stringify(items)).not.toContain("past 1");
  });
});

describe("importMessages refuses", () => {
  test("an unknown conversation with 404", async () => {
    const chat = { id: crypto.randomUUID() };
    expect(await failure(importTo(chat, past(alice, 1)))).toMatchObject({
      status: 404,
      message: "not found: conversation",
    });
  });

  const later = new Date(Date.now() + 60 * 60_000).toISOString();
  test.each<[string, string, Partial<Past>]>([
    ["a sender who takes no part", "sender", { sender: carol.username }],
    ["a sender whom nobody knows", "sender", { sender: "nobody_here" }],
    ["an unknown external id", "sender", { sender: "id:nobody" }],
    ["an empty sender", "sender", { sender: "" }],
    ["a time in the future", "created_at", { created_at: later }],
    ["a time that is none", "created_at", { created_at: "yesterday" }],
    ["content over the limit", "content", { content: "x".repeat(32_769) }],
    ["empty content", "content", { content: " " }],
    ["an empty client_msg_id", "client_msg_id", { client_msg_id: "" }],
  ])("%s with 400, and stores none of the messages", async (_, field, wrong) => {
    const chat = await groupOf(alice, bob);
    const messages = [past(alice, 1), past(bob, 2, wrong)];
    const { status, body } = await backend.post("importMessages", { chat_id: chat.id, messages });
    expect(status).toBe(400);
    expect(body).toMatchObject({
      parameters: { fields: { [`messages.1.${field}`]: expect.any(String) } },
    });
    expect(await historyOf(chat)).toEqual([]);
  });

  test("no messages, and more than 500, with 400", async () => {
    const chat = await groupOf(alice, bob);
    for (const count of [0, 501]) {
      const messages = Array.from({ length: count }, (_, n) => past(alice, n));
      const call = backend.call("importMessages", { chat_id: chat.id, messages });
      expect(await failure(call)).toMatchObject({ status: 400 });
    }
  });
});
