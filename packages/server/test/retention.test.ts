import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { groupOf, people, say } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import type { Change } from "../src/changes/change.ts";
import { logger } from "../src/observe/log.ts";
import { metrics } from "../src/observe/metrics.ts";
import { retention } from "../src/security/retention.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { newAccount, newGroup, send, wholeHistory } from "./support/store-contract/fixture.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const daysAgo = (days: number) => Date.now() - days * DAY_MS;

test("old messages are deleted in batches, and clients receive the events", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-retention-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const changes: Change[] = [];
  store.onCommit((committed) => void changes.push(...committed));
  const { ada, rooms } = await store.write(async (tx) => {
    const ada = await newAccount(tx, { username: "ada" });
    return { ada, rooms: [await newGroup(tx, [ada]), await newGroup(tx, [ada])] as const };
  });
  await store.write(async (tx) => {
    for (let sent = 0; sent < 150; sent++) {
      await send(tx, rooms[0], ada, `old ${sent}`, { at: daysAgo(8) });
    }
    await send(tx, rooms[0], ada, "new", { at: daysAgo(6) });
    await send(tx, rooms[1], ada, "imported later", { at: daysAgo(30) });
  });
  changes.length = 0;
  const figures = metrics();
  const log = logger("silent");
  const options = { store, days: 7, log, metrics: figures };
  const one = retention({ ...options, node: "one" });
  const other = retention({ ...options, node: "other", metrics: metrics() });
  const texts = () =>
    store.read(async (tx) =>
      (await Promise.all(rooms.map((room) => wholeHistory(tx, room, ada))))
        .flat()
        .map(({ content }) => content),
    );
  while ((await texts()).length > 1) await Bun.sleep(20);
  await Promise.all([one.stop(), other.stop()]);
  expect(await texts()).toEqual(["new"]);
  const events = changes.flatMap((change) => (change.kind === "event" ? [change] : []));
  expect(events.map(({ name }) => name)).toEqual(
    Array.from({ length: 3 }, () => "events.messageDeleted"),
  );
  expect(figures.text()).toMatch(/^parley_retention_deleted_total 151$/m);
  await store.close();
  rmSync(folder, { recursive: true });
});

test("PARLEY_RETENTION_DAYS deletes old messages when a server starts", async () => {
  await using server = await startServer({
    ...noRates,
    ...serviceKeySetting(),
    PARLEY_RETENTION_DAYS: "7",
    PARLEY_LOG: "info",
  });
  const [alice, bob] = await people(server.url, "alice", "bob");
  const chat = await groupOf(alice, bob);
  const message = {
    sender: alice.username,
    content: "zeppelin",
    created_at: new Date(daysAgo(8)).toISOString(),
    client_msg_id: "1",
  };
  const backend = new Backend(server.url);
  await backend.call("importMessages", { chat_id: chat.id, messages: [message] });
  const kept = await say(bob, chat, "zeppelin of today");
  await server.stop();
  await server.restart();
  const reader = bob.at(server.url);
  const history = () => reader.call("getChatHistory", { chat_id: chat.id });
  while ((await history()).items.length > 1) await Bun.sleep(50);
  expect((await history()).items).toEqual([kept]);
  const found = await reader.call("searchMessages", { query: "zeppelin" });
  expect(found.items.map(({ message: { id } }) => id)).toEqual([kept.id]);
  expect(server.output()).toContain('"old messages deleted"');
});
