import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { groupOf, type Person, people } from "@parley/testkit/client.ts";
import { type Cluster, startCluster, type TestNode } from "@parley/testkit/cluster.ts";
import { linkOf, pngOf, upload } from "@parley/testkit/files.ts";
import { noRates } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import { linesOf, unzip } from "@parley/testkit/zip.ts";
import { SQL } from "bun";

const DAY_MS = 24 * 60 * 60 * 1000;

const folder = mkdtempSync(join(tmpdir(), "parley-cluster-files-"));
let cluster: Cluster;
let one: TestNode;
let two: TestNode;
beforeAll(async () => {
  const env = { ...noRates, PARLEY_FILES: `disk:${folder}`, PARLEY_RETENTION_DAYS: "7" };
  cluster = await startCluster({ nodes: 2, env });
  [one, two] = cluster.nodes as [TestNode, TestNode];
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The same link at another node. */
const at = (link: string, { url }: TestNode) => {
  const { pathname, search } = new URL(link, url);
  return url + pathname + search;
};

/** Uploads files by way of a node and sends them in a message. */
async function sendFiles(person: Person, chat_id: string, files: Record<string, string>) {
  const file_ids: string[] = [];
  for (const [name, text] of Object.entries(files)) {
    const bytes = name.endsWith(".png") ? await pngOf() : text;
    file_ids.push((await upload(person, chat_id, name, bytes)).id);
  }
  return person.call("sendMessage", { chat_id, content: "", file_ids });
}

const idsOf = ({ files }: { files: readonly { id: string }[] }) => files.map(({ id }) => id);

/** The objects of a file in the shared folder, previews included. */
async function objectsOf(fileIds: readonly string[]): Promise<string[]> {
  await using sql = new SQL({ url: cluster.postgres.url, max: 1 });
  const rows =
    await sql`SELECT blob FROM files WHERE uuid = ANY(${sql.array([...fileIds], "uuid")})`;
  const blobs = (rows as { blob: string }[]).map(({ blob }) => blob);
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => blobs.some((blob) => path.includes(blob)));
}

const exists = (path: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).includes(path);

describe("files on two nodes", () => {
  test("are in an archive that another node links to, and either node serves", async () => {
    const [alice, bob] = await people(one.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const first = await sendFiles(alice.at(one.url), chat.id, { "one.txt": "by node one" });
    const second = await sendFiles(alice.at(two.url), chat.id, { "two.txt": "by node two" });
    const { url } = await alice.at(two.url).call("exportMe");
    for (const node of [one, two]) {
      const archive = unzip(await (await fetch(at(url, node))).bytes());
      const [a, b] = [...idsOf(first), ...idsOf(second)];
      expect(archive.get(`files/${a}-one.txt`)).toBe("by node one");
      expect(archive.get(`files/${b}-two.txt`)).toBe("by node two");
      const messages = linesOf(archive, "messages.jsonl") as { id: string }[];
      expect(messages.map(({ id }) => id)).toEqual([first.id, second.id]);
    }
  });

  test("are deleted with old messages by one node, and gone from links and archives of the other", async () => {
    const [alice, bob] = await people(one.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const oldOnes = [
      await sendFiles(alice.at(one.url), chat.id, { "old.txt": "old", "old.png": "" }),
      await sendFiles(alice.at(two.url), chat.id, { "older.txt": "older" }),
    ];
    const kept = await sendFiles(alice.at(two.url), chat.id, { "new.txt": "new" });
    const oldIds = oldOnes.flatMap(idsOf);
    const objects = await objectsOf(oldIds);
    expect(objects).toHaveLength(4);
    const reader = bob.at(two.url);
    const { url } = await linkOf(reader, oldIds[0] ?? "");
    await using socket = await reader.connect();
    await one.stop();
    await makeOld(oldOnes);
    await one.restart();
    for (const { id } of oldOnes) {
      await socket.event("events.messageDeleted", ({ ids }) => ids.includes(id));
    }
    await until(() => !objects.some(exists), "the bytes of the old messages are deleted");
    expect((await fetch(at(url, two))).status).toBe(404);
    const file_ids = [...oldIds, ...idsOf(kept)];
    for (const node of [one, two]) {
      const links = await bob.at(node.url).call("getFileLinks", { file_ids });
      expect(links.items.map(({ file_id }) => file_id)).toEqual(idsOf(kept));
      expect(await (await fetch(at(links.items[0]?.url ?? "", node))).text()).toBe("new");
      const { url: link } = await alice.at(node.url).call("exportMe");
      const archive = unzip(await (await fetch(at(link, node))).bytes());
      const names = [...archive.keys()].filter((name) => name.startsWith("files/"));
      expect(names).toEqual([expect.stringContaining("new.txt")]);
    }
  });

  test("whose bytes are lost are shown as failed at the other node at once", async () => {
    const [alice, bob] = await people(one.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const message = await sendFiles(alice.at(two.url), chat.id, { "lost.txt": "lost" });
    await using socket = await bob.at(two.url).connect();
    await one.stop();
    for (const path of await objectsOf(idsOf(message))) rmSync(join(folder, path));
    await one.restart();
    const edited = await socket.event("events.messageEdited", ({ id }) => id === message.id);
    const files = message.files.map((file) => ({ ...file, status: "failed" as const }));
    expect(edited.params).toEqual({ ...message, files, version: edited.at?.seq ?? 0 });
    const message_id = message.id;
    expect(await bob.at(two.url).call("getMessage", { message_id })).toEqual(edited.params);
    await until(() => one.output().includes('"file bytes missing"'), "the log line");
  });
});

/** Makes messages older than they may be kept. */
async function makeOld(messages: readonly { id: string }[]): Promise<void> {
  await using sql = new SQL({ url: cluster.postgres.url, max: 1 });
  const ids = sql.array(
    messages.map(({ id }) => id),
    "uuid",
  );
  await sql`UPDATE messages SET created_at = ${Date.now() - 8 * DAY_MS} WHERE uuid = ANY(${ids})`;
}
