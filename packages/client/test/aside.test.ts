import { beforeAll, describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { isCallError } from "../src/index.ts";
import { connected, contents, type TestClient, until } from "./support/clients.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
let chat: string;
let sent: Message[];
beforeAll(async () => {
  server = await sharedServer();
  [ann, bob] = await people(server.url, "ann", "bob");
});
/** A conversation of 260 messages, opened by Ann, with the messages around number 60 in aside. */
async function aside(proxy?: FaultyProxy): Promise<TestClient> {
  const group = await groupOf(ann, bob);
  chat = group.id;
  sent = [];
  for (let count = 0; count < 260; count++) sent.push(await say(bob, group, `${count}`));
  const client = await connected(ann, proxy?.url ?? server.url);
  await client.model.openChat(chat);
  await client.model.showAround(chat, idOf(60));
  return client;
}

const idOf = (count: number): string => sent[count]?.id ?? "";
const shown = (client: TestClient) => client.model.get(`aside:${chat}`);
const texts = (client: TestClient) => shown(client)?.items.map(({ content }) => content) ?? [];
const numbers = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `${from + index}`);

describe("older messages around a message", () => {
  test("are shown in aside, and the latest messages stay as they are", async () => {
    using client = await aside();
    expect(texts(client)).toEqual(numbers(35, 85));
    expect(shown(client)).toMatchObject({ hasOlder: true, hasNewer: true, loaded: true });
    expect(contents(client, chat)).toEqual(numbers(210, 260));
    await say(bob, { id: chat }, "new");
    await until(client, `messages:${chat}`, () => contents(client, chat).at(-1) === "new");
    expect(texts(client)).toEqual(numbers(35, 85));
    client.model.closeAside(chat);
    expect(shown(client)).toBeNull();
  });

  test("are updated by edits, reactions and deletions", async () => {
    using client = await aside();
    const one = () => shown(client)?.items.find(({ id }) => id === idOf(60));
    await bob.call("editMessage", { message_id: idOf(60), content: "edited" });
    await until(client, `aside:${chat}`, () => one()?.content === "edited");
    const reacting = client.model.react(idOf(60), "🎉");
    expect(one()?.reactions).toEqual([{ emoji: "🎉", count: 1, reacted: true }]);
    await reacting;
    await bob.call("deleteMessages", { chat_id: chat, message_ids: [idOf(61)] });
    await until(client, `aside:${chat}`, () => !texts(client).includes("61"));
    await client.model.remove(chat, [idOf(62)], "me");
    expect(texts(client)).not.toContain("62");
    expect(one()?.reactions).toEqual([{ emoji: "🎉", count: 1, reacted: true }]);
  });

  test("can be extended in both directions until they join the latest messages", async () => {
    using client = await aside();
    while (shown(client)?.hasOlder) await client.model.loadAside(chat, "older");
    expect(texts(client)).toEqual(numbers(0, 85));
    const growing = client.model.loadAside(chat, "newer");
    await say(bob, { id: chat }, "new");
    await growing;
    while (shown(client)) await client.model.loadAside(chat, "newer");
    await until(client, `messages:${chat}`, () => contents(client, chat).at(-1) === "new");
    expect(contents(client, chat)).toEqual([...numbers(0, 260), "new"]);
    expect(client.model.get(`messages:${chat}`)).toMatchObject({ hasOlder: false });
  });

  test("join the latest messages when those are loaded back to them", async () => {
    using client = await aside();
    while (shown(client)) await client.model.loadOlder(chat);
    expect(contents(client, chat)).toEqual(numbers(35, 260));
    expect(client.model.get(`messages:${chat}`)).toMatchObject({ hasOlder: true });
  });

  test("are up to date after a lost connection", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    using client = await aside(proxy);
    proxy.refuse(true);
    proxy.cut();
    await until(client, "status", () => client.status === "offline");
    await bob.call("editMessage", { message_id: idOf(60), content: "edited" });
    await bob.call("deleteMessages", { chat_id: chat, message_ids: [idOf(61)] });
    proxy.refuse(false);
    await until(client, `aside:${chat}`, () => texts(client).includes("edited"));
    const expected = numbers(35, 85).filter((text) => text !== "61");
    expect(texts(client)).toEqual(expected.map((text) => (text === "60" ? "edited" : text)));
  });

  test("join the latest messages at once if there is no gap", async () => {
    using client = await aside();
    client.model.closeAside(chat);
    await client.model.showAround(chat, idOf(200));
    expect(shown(client)).toBeNull();
    expect(contents(client, chat)).toEqual(numbers(175, 260));
    await client.model.showAround(chat, idOf(250));
    expect(contents(client, chat)).toEqual(numbers(175, 260));
  });

  test("that were deleted are not found", async () => {
    using client = await aside();
    await bob.call("deleteMessages", { chat_id: chat, message_ids: [idOf(5)] });
    const error = await client.model.showAround(chat, idOf(5)).catch((thrown: unknown) => thrown);
    expect(isCallError(error) && error.code).toBe("not_found");
    expect(texts(client)).toEqual(numbers(35, 85));
  });
});
