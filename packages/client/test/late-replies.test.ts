import { expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import type { LocalChat } from "../src/types.ts";
import { connected, contents, online, until } from "./support/clients.ts";
import { LateReplies } from "./support/late-replies.ts";

const server = await sharedServer();
const [ann, bob] = await people(server.url, "ann", "bob");
/** Text that only replies to getChats and getChatHistory contain. */
const LIST = "next_cursor";
const HISTORY = '"items":[{"id"';
/** Text that only replies to getMyAgents contain. */
const AGENTS = '"key_configured"';

/** Ann's client and a conversation with three unread messages of Bob. */
async function annsClient() {
  const { id } = await groupOf(ann, bob);
  const sent: Message[] = [];
  for (const text of ["one", "two", "three"]) sent.push(await say(bob, { id }, text));
  const [one, two, three] = sent as [Message, Message, Message];
  const replies = new LateReplies();
  const proxy = await FaultyProxy.to(server.url);
  const client = await connected(ann, proxy.url, { WebSocket: replies.WebSocket });
  return {
    id,
    one,
    two,
    three,
    replies,
    proxy,
    client,
    chat: () => client.model.get(`chat:${id}`),
    is: (what: (chat: LocalChat) => boolean) =>
      until(client, `chat:${id}`, () => {
        const chat = client.model.get(`chat:${id}`);
        return chat && what(chat);
      }),
    /** Makes the client read the list again, and holds the reply back. */
    async listHeld() {
      const held = replies.hold(LIST);
      proxy.cut();
      await held;
    },
    async [Symbol.asyncDispose]() {
      client.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

const nameIn = ({ participants }: LocalChat, { username }: Person) =>
  participants.find((each) => each.username === username)?.display_name;

test("a late reply does not bring a hidden message back", async () => {
  await using here = await annsClient();
  const { id, three, client, replies } = here;
  const held = replies.hold(HISTORY);
  const opened = client.model.openChat(id);
  await held;
  await ann.call("deleteMessagesForMe", { chat_id: id, message_ids: [three.id] });
  await here.is(({ last_message }) => last_message?.id !== three.id);
  replies.release();
  await opened;
  expect(contents(client, id)).toEqual(["one", "two"]);
  await here.is(({ last_message }) => last_message?.content === "two");
  expect(here.chat()?.unread_count).toBe(2);
});

test("a late reply does not restore unread counts from before a message was hidden", async () => {
  await using here = await annsClient();
  const { id, one, client, replies } = here;
  await client.model.openChat(id);
  await here.listHeld();
  await ann.call("deleteMessagesForMe", { chat_id: id, message_ids: [one.id] });
  await here.is(({ unread_count }) => unread_count === 2);
  replies.release();
  await online(client);
  expect(here.chat()?.unread_count).toBe(2);
});

test("a late reply does not restore an old name", async () => {
  await using here = await annsClient();
  const { id, client, replies } = here;
  const held = replies.hold(HISTORY);
  const opened = client.model.openChat(id);
  await held;
  const display_name = `Bob ${Bun.randomUUIDv7()}`;
  await bob.call("updateMe", { display_name });
  await here.is((chat) => nameIn(chat, bob) === display_name);
  replies.release();
  await opened;
  const { items } = client.model.get(`messages:${id}`);
  expect(items.map(({ sender }) => sender.display_name)).toEqual(items.map(() => display_name));
});

test("a late reply does not restore old settings of an agent", async () => {
  await using here = await annsClient();
  const { client, replies } = here;
  const model = () => client.model.get("agents").find(({ provider }) => provider === "gpt")?.model;
  const held = replies.hold(AGENTS, 1);
  const first = client.model.refreshAgents();
  await held;
  await ann.call("setAgentProfile", { provider: "gpt", model: "new-model" });
  await until(client, "agents", () => model() === "new-model");
  replies.release();
  await first;
  expect(model()).toBe("new-model");
});

test("a late reply does not move read positions back", async () => {
  await using here = await annsClient();
  const { id, two, three, client, replies } = here;
  await client.model.openChat(id);
  await here.listHeld();
  await ann.call("readChat", { chat_id: id, seq: two.seq });
  await here.is(({ last_read_seq }) => last_read_seq === two.seq);
  replies.release();
  await online(client);
  await here.is(({ unread_count }) => unread_count === 1);
  const reads = { [ann.username]: two.seq, [bob.username]: three.seq };
  expect(here.chat()).toMatchObject({ last_read_seq: two.seq, reads });
});

test("after a reconnect new names and messages hidden elsewhere are known", async () => {
  await using here = await annsClient();
  const { id, two, client, proxy } = here;
  await client.model.openChat(id);
  proxy.refuse(true);
  proxy.cut();
  await until(client, "status", () => client.status === "offline");
  await ann.call("deleteMessagesForMe", { chat_id: id, message_ids: [two.id] });
  const display_name = `Bob ${Bun.randomUUIDv7()}`;
  await bob.call("updateMe", { display_name });
  proxy.reset();
  await online(client);
  expect(contents(client, id)).toEqual(["one", "three"]);
  expect(client.model.get(`messages:${id}`).items[0]?.sender.display_name).toBe(display_name);
  expect(here.chat()?.unread_count).toBe(2);
});

test("a message that is sent while the latest ones are loaded does not disappear", async () => {
  await using here = await annsClient();
  const { id, client, replies } = here;
  const held = replies.hold(HISTORY);
  const opened = client.model.openChat(id);
  await held;
  client.model.send(id, "mine");
  await here.is(({ last_message }) => last_message?.content === "mine");
  const shown: string[][] = [];
  client.model.watch(`messages:${id}`, () => shown.push(contents(client, id)));
  replies.release();
  await opened;
  expect(contents(client, id)).toEqual(["one", "two", "three", "mine"]);
  expect(shown.filter((each) => !each.includes("mine"))).toEqual([]);
});
