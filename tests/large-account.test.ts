import { expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { groupOf, type Person, people, say, search } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { unzip } from "@parley/testkit/zip.ts";

const MESSAGES = 100_000;
const PER_CALL = 500;
const password = "correct horse battery";

/** Gives a conversation so many messages of one sender. */
async function fill(backend: Backend, chat_id: string, sender: string, count: number) {
  for (let start = 0; start < count; start += PER_CALL) {
    const messages = Array.from({ length: Math.min(PER_CALL, count - start) }, (_, place) => ({
      sender,
      content: `entry ${start + place} of the diary`,
      created_at: new Date(Date.UTC(2020, 0, 1) + start + place).toISOString(),
      client_msg_id: `${start + place}`,
    }));
    await backend.call("importMessages", { chat_id, messages });
  }
}

/** Calls again and again until it is told to stop. Returns how many calls were answered. */
async function callsUntil(person: Person, isOver: () => boolean): Promise<number> {
  let calls = 0;
  for (; !isOver(); calls++) await person.call("getMe");
  return calls;
}

test("a hundred thousand messages are exported without holding up others, and erased across a crash", async () => {
  await using server = await startServer({ ...noRates, ...serviceKeySetting() });
  const backend = new Backend(server.url);
  const [alice, bob] = await people(server.url, "alice", "bob");
  const chat = await groupOf(alice, bob);
  await fill(backend, chat.id, alice.username, MESSAGES);
  const kept = await say(bob, chat, "entry of Bob's own");

  const { url } = await alice.call("exportMe");
  let isOver = false;
  const calls = callsUntil(bob, () => isOver);
  const archive = await (await fetch(url)).bytes();
  isOver = true;
  const lines = unzip(archive).get("messages.jsonl")?.split("\n") ?? [];
  expect(lines).toHaveLength(MESSAGES + 2);
  // The export is read in some five hundred steps, and calls of others are answered between them.
  expect(await calls).toBeGreaterThan(50);

  await alice.call("deleteMe", { password, messages: true });
  await server.kill();
  await server.restart();
  const reader = bob.at(server.url);
  const history = () => reader.call("getChatHistory", { chat_id: chat.id, limit: 2 });
  expect((await history()).items).toHaveLength(2);
  while ((await history()).items.length > 1) await Bun.sleep(200);
  expect((await history()).items).toEqual([kept]);
  // The index is far behind after so many messages and deletions, and searches find what it has.
  const found = async () => (await search(reader, { query: "entry" })).items;
  while ((await found()).length === 0) await Bun.sleep(200);
  expect((await found()).map(({ message }) => message.id)).toEqual([kept.id]);
  const { participants } = await reader.call("getChat", { chat_id: chat.id });
  expect(participants).toEqual([bob.account]);
});
