import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { groupOf, people, say, search } from "@parley/testkit/client.ts";
import { pngOf, upload } from "@parley/testkit/files.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import type { Change } from "../src/changes/change.ts";
import { createLogger } from "../src/observe/log.ts";
import { createMetrics } from "../src/observe/metrics.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { startRetention } from "../src/upkeep/retention.ts";
import { newAccount, newGroup, send, wholeHistory } from "./support/store-contract/fixture.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const daysAgo = (days: number) => Date.now() - days * DAY_MS;

test("old messages are deleted in batches, and clients receive the events", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-retention-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const changes: Change[] = [];
  store.onCommit((committed) => void changes.push(...committed));
  const { ada, chats } = await store.write(async (tx) => {
    const ada = await newAccount(tx, { username: "ada" });
    return { ada, chats: [await newGroup(tx, [ada]), await newGroup(tx, [ada])] as const };
  });
  await store.write(async (tx) => {
    for (let sent = 0; sent < 150; sent++) {
      await send(tx, chats[0], ada, `old ${sent}`, { at: daysAgo(8) });
    }
    await send(tx, chats[0], ada, "new", { at: daysAgo(6) });
    await send(tx, chats[1], ada, "imported later", { at: daysAgo(30) });
  });
  changes.length = 0;
  const figures = createMetrics();
  const log = createLogger("silent");
  const options = { store, days: 7, log, metrics: figures };
  const one = startRetention({ ...options, node: "one" });
  const other = startRetention({ ...options, node: "other", metrics: createMetrics() });
  const texts = () =>
    store.read(async (tx) =>
      (await Promise.all(chats.map((chat) => wholeHistory(tx, chat, ada))))
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

test("the deletion ends after the current batch when the server stops", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-retention-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const { ada, chat } = await store.write(async (tx) => {
    const ada = await newAccount(tx, { username: "ada" });
    return { ada, chat: await newGroup(tx, [ada]) };
  });
  await store.write(async (tx) => {
    for (let sent = 0; sent < 350; sent++) {
      await send(tx, chat, ada, `old ${sent}`, { at: daysAgo(8) });
    }
  });
  let stopping: Promise<void> | undefined;
  store.onCommit((changes) => {
    const isDeletion = changes.some((change) => change.kind === "event");
    if (isDeletion) stopping ??= started.stop();
  });
  const log = createLogger("silent");
  const started = startRetention({ store, days: 7, log, metrics: createMetrics(), node: "one" });
  await until(() => stopping !== undefined, "the server stops");
  await stopping;
  const left = await store.read((tx) => wholeHistory(tx, chat, ada));
  expect(left).toHaveLength(250);
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
  const found = await search(reader, { query: "zeppelin" });
  expect(found.items.map(({ message: { id } }) => id)).toEqual([kept.id]);
  await server.printed(/"old messages deleted"/);
});

test("the files of old messages are deleted with them: rows, bytes and previews", async () => {
  await using server = await startServer({ ...noRates, PARLEY_RETENTION_DAYS: "7" });
  const [alice] = await people(server.url, "alice");
  const chat = await groupOf(alice);
  const sendFiles = async (...files: { id: string }[]) => {
    const file_ids = files.map(({ id }) => id);
    return alice.call("sendMessage", { chat_id: chat.id, content: "", file_ids });
  };
  const old = await sendFiles(
    await upload(alice, chat.id, "old.txt", "old"),
    await upload(alice, chat.id, "old.png", await pngOf()),
  );
  const kept = await sendFiles(await upload(alice, chat.id, "new.txt", "new"));
  const objects = () =>
    readdirSync(join(server.dataDir, "files"), { recursive: true, withFileTypes: true }).filter(
      (entry) => entry.isFile(),
    );
  expect(objects()).toHaveLength(4);
  await server.stop();
  const database = join(server.dataDir, "parley.db");
  {
    using db = new Database(database);
    db.run("UPDATE messages SET created_at = ? WHERE uuid = ?", [daysAgo(8), old.id]);
    expect(db.query("SELECT changes() AS changed").get()).toEqual({ changed: 1 });
  }
  await server.restart();
  await until(() => objects().length === 1, "the bytes of the old message are deleted");
  const reader = alice.at(server.url);
  const { items } = await reader.call("getChatHistory", { chat_id: chat.id });
  expect(items).toEqual([kept]);
  const file_ids = [...old.files, ...kept.files].map(({ id }) => id);
  const links = await reader.call("getFileLinks", { file_ids });
  expect(links.items.map(({ file_id }) => file_id)).toEqual(kept.files.map(({ id }) => id));
  const { url } = links.items[0] ?? { url: "" };
  expect(await (await fetch(url)).text()).toBe("new");
  await server.stop();
  using db = new Database(database, { readonly: true });
  expect(db.query("SELECT name FROM files").all()).toEqual([{ name: "new.txt" }]);
});
