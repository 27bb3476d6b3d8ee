import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { failure, groupOf, type Person, people } from "@parley/testkit/client.ts";
import { announce, linkOf, put, upload } from "@parley/testkit/files.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { startS3 } from "@parley/testkit/s3.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import { S3Client } from "bun";

const MIB = 1024 * 1024;
const s3 = await startS3();
afterAll(() => s3[Symbol.asyncDispose]());
const bucket = new S3Client({ endpoint: s3.url, bucket: s3.bucket, ...s3.credentials });

const onS3 = (
  prefix: string,
  { endpoint = s3.url, key = s3.credentials.accessKeyId, timeout = 10 } = {},
) => ({
  ...noRates,
  PARLEY_FILES: `s3://${s3.bucket}/${prefix}?endpoint=${endpoint}&timeout=${timeout}`,
  AWS_ACCESS_KEY_ID: key,
  AWS_SECRET_ACCESS_KEY: s3.credentials.secretAccessKey,
});

const objectsIn = async (prefix: string) =>
  ((await bucket.list({ prefix: `${prefix}/` })).contents ?? []).length;

const sendFile = (person: Person, chat_id: string, id: string) =>
  person.call("sendMessage", { chat_id, content: "", file_ids: [id] });

const incoming = (server: TestServer) => readdirSync(join(server.dataDir, "files", "incoming"));

describe("a server on S3", () => {
  test("stores files in the bucket, serves ranges, and deletes them with the message", async () => {
    await using server = await startServer(onS3("whole"));
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const bytes = new Uint8Array(7 * MIB).map((_, place) => place % 251);
    const { id } = await upload(alice, chat.id, "a.bin", bytes);
    const message = await sendFile(alice, chat.id, id);
    const { url } = await linkOf(bob, id);
    const whole = await (await fetch(url)).bytes();
    expect(Buffer.compare(whole, bytes)).toBe(0);
    const part = await fetch(url, { headers: { range: `bytes=${5 * MIB - 2}-${5 * MIB + 1}` } });
    expect(part.status).toBe(206);
    expect([...(await part.bytes())]).toEqual([...bytes.subarray(5 * MIB - 2, 5 * MIB + 2)]);
    expect(await objectsIn("whole")).toBe(1);
    expect(incoming(server)).toEqual([]);
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message.id] });
    await until(async () => (await objectsIn("whole")) === 0, "the object is deleted");
    expect((await fetch(url)).status).toBe(404);
  });

  test("with wrong credentials answers 503, and takes messages", async () => {
    await using server = await startServer(onS3("wrong", { key: "wrong" }));
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const { upload_url } = await announce(alice, chat.id, "a.txt", 5);
    const { status, body } = await put(upload_url, "hello");
    expect(status).toBe(503);
    expect(body).toMatchObject({ code: "unavailable", parameters: { retry_after: 1 } });
    expect(incoming(server)).toEqual([]);
    await alice.call("sendMessage", { chat_id: chat.id, content: "still here" });
  });

  test("that is away or hangs answers 503 and leaves nothing; the same upload succeeds later", async () => {
    await using proxy = await FaultyProxy.to(s3.url);
    await using server = await startServer(onS3("away", { endpoint: proxy.url, timeout: 5 }));
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const stored = await upload(alice, chat.id, "first.txt", "first");
    const { url } = await linkOf(alice, stored.id);
    const { file, upload_url } = await announce(alice, chat.id, "a.txt", 5);
    for (const fault of [() => proxy.refuse(true), () => proxy.stall("toServer", "toClient")]) {
      fault();
      proxy.cut();
      const { status, body } = await put(upload_url, "hello");
      expect(status).toBe(503);
      expect(body).toMatchObject({ code: "unavailable", parameters: { retry_after: 1 } });
      const load = await fetch(url);
      expect([load.status, load.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(incoming(server)).toEqual([]);
      await alice.call("sendMessage", { chat_id: chat.id, content: "still here" });
      proxy.reset();
      proxy.cut();
    }
    expect((await put(upload_url, "hello")).body).toMatchObject({ result: { id: file.id } });
    expect(await (await fetch((await linkOf(alice, file.id)).url)).text()).toBe("hello");
    expect(await (await fetch(url)).text()).toBe("first");
  });

  test("that answers 503 itself is answered with 503, and keeps nothing half done; uploads succeed later", async () => {
    await using proxy = await FaultyProxy.to(s3.url);
    await using overloaded = await startOverloaded();
    await using server = await startServer(onS3("overloaded", { endpoint: proxy.url }));
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const stored = await upload(alice, chat.id, "first.txt", "first");
    const { url } = await linkOf(alice, stored.id);
    const large = "x".repeat(6 * MIB);
    const small = await announce(alice, chat.id, "small.txt", 5);
    const inParts = await announce(alice, chat.id, "large.txt", large.length);
    proxy.retarget(overloaded.url);
    proxy.cut();
    for (const [address, bytes] of [
      [small.upload_url, "hello"],
      [inParts.upload_url, large],
    ] as const) {
      const { status, body } = await put(address, bytes);
      expect(status).toBe(503);
      expect(body).toMatchObject({ code: "unavailable", parameters: { retry_after: 1 } });
      expect(incoming(server)).toEqual([]);
    }
    for (const headers of [{}, { range: "bytes=1-2" }]) {
      const load = await fetch(url, { headers });
      expect([load.status, load.headers.get("retry-after")]).toEqual([503, "1"]);
    }
    await alice.call("sendMessage", { chat_id: chat.id, content: "still here" });
    const refused = { chat_id: chat.id, content: "", file_ids: [small.file.id] };
    expect(await failure(alice.call("sendMessage", refused))).toMatchObject({ code: "conflict" });
    proxy.retarget(s3.url);
    proxy.cut();
    expect(await objectsIn("overloaded")).toBe(1);
    expect((await put(small.upload_url, "hello")).status).toBe(200);
    expect((await put(inParts.upload_url, large)).status).toBe(200);
    await sendFile(alice, chat.id, small.file.id);
    const loaded = await (await fetch((await linkOf(alice, inParts.file.id)).url)).text();
    expect(loaded === large).toBe(true);
    expect(await (await fetch(url)).text()).toBe("first");
    expect(await objectsIn("overloaded")).toBe(3);
  });

  test("that answers 503 after the headers of a download breaks the download off", async () => {
    await using proxy = await FaultyProxy.to(s3.url);
    await using failing = await startOverloaded({ isHeadServed: true });
    await using server = await startServer(onS3("broken", { endpoint: proxy.url }));
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const { id } = await upload(alice, chat.id, "first.txt", "first");
    const { url } = await linkOf(alice, id);
    proxy.retarget(failing.url);
    proxy.cut();
    const loading = fetch(url).then((response) => response.text());
    expect(await loading.catch(() => "broken off")).toBe("broken off");
    proxy.retarget(s3.url);
    proxy.cut();
    expect(await (await fetch(url)).text()).toBe("first");
  });
});

/** An S3 server that answers `SlowDown`; optionally it still serves the headers of objects. */
async function startOverloaded({ isHeadServed = false } = {}) {
  const body =
    "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>";
  const headers = { "content-type": "application/xml" };
  const listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ method }) =>
      isHeadServed && method === "HEAD"
        ? new Response("first")
        : new Response(method === "HEAD" ? null : body, { status: 503, headers }),
  });
  return { url: listener.url.href, [Symbol.asyncDispose]: () => listener.stop(true) };
}

describe("kill -9", () => {
  const at = (address: string, { url }: TestServer) => {
    const { pathname, search } = new URL(address);
    return url + pathname + search;
  };
  /** Names of all objects on disk. */
  const objects = ({ dataDir }: TestServer) =>
    readdirSync(join(dataDir, "files"), { recursive: true, encoding: "utf8" })
      .filter((path) => /^..\/./.test(path))
      .map((path) => path.slice(3));

  test("during an upload leaves no bytes, and the upload can be sent again", async () => {
    await using server = await startServer(noRates);
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const { file, upload_url } = await announce(alice, chat.id, "a.txt", 2 * MIB);
    const half = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new Uint8Array(MIB).fill(65)),
    });
    const sending = fetch(upload_url, { method: "PUT", body: half }).catch(() => "broken off");
    await until(() => incoming(server).length > 0, "the first bytes");
    await server.kill();
    expect(await sending).toBe("broken off");
    await server.restart();
    await until(() => incoming(server).length === 0, "the rest of the upload is deleted");
    const text = "B".repeat(2 * MIB);
    const { body } = await put(at(upload_url, server), text);
    expect(body).toMatchObject({ result: { id: file.id, status: "ready" } });
    const { url } = await linkOf(alice.at(server.url), file.id);
    expect(await (await fetch(url)).text()).toBe(text);
  });

  test("after the bytes are stored and before the row says so leaves an upload to send again", async () => {
    await using proxy = await FaultyProxy.to(s3.url);
    const settings = onS3("killed", { endpoint: proxy.url, timeout: 300 });
    await using server = await startServer(settings);
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const { file, upload_url } = await announce(alice, chat.id, "a.txt", 5);
    // The object arrives, but the server never learns it.
    proxy.stall("toClient");
    const sending = put(upload_url, "hello").catch(() => "broken off");
    await until(async () => (await objectsIn("killed")) === 1, "the object is stored");
    await server.kill();
    expect(await sending).toBe("broken off");
    proxy.reset();
    proxy.cut();
    await server.restart();
    const person = alice.at(server.url);
    expect(await person.call("getFileLinks", { file_ids: [file.id] })).toEqual({ items: [] });
    expect(await failure(sendFile(person, chat.id, file.id))).toMatchObject({ code: "conflict" });
    const again = await put(at(upload_url, server), "HELLO");
    expect(again.body).toMatchObject({ result: { id: file.id, status: "ready" } });
    await sendFile(person, chat.id, file.id);
    expect(await (await fetch((await linkOf(person, file.id)).url)).text()).toBe("HELLO");
    await until(() => incoming(server).length === 0, "the rest of the first upload is deleted");
  });

  test("under load loses no file that was acknowledged, and leaves none in parts", async () => {
    await using server = await startServer(noRates);
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const acknowledged = new Map<string, string>();
    for (let crash = 0; crash < 3; crash++) {
      const person = alice.at(server.url);
      let isRunning = true;
      const lane = async (lane: number) => {
        for (let sent = 0; isRunning; sent++) {
          const text = `file ${crash} ${lane} ${sent}`;
          const { id } = await upload(person, chat.id, "a.txt", text);
          acknowledged.set(id, text);
          await sendFile(person, chat.id, id);
        }
      };
      const before = acknowledged.size;
      const lanes = [0, 1, 2, 3].map((each) => lane(each).catch(() => {}));
      await until(() => acknowledged.size > before + 30, "30 uploads");
      await server.kill();
      isRunning = false;
      await Promise.all(lanes);
      await server.restart();
    }
    const reader = alice.at(server.url);
    await until(() => incoming(server).length === 0, "the rest of uploads is deleted");
    for (const [id, text] of acknowledged) {
      expect(await (await fetch((await linkOf(reader, id)).url)).text()).toBe(text);
    }
    const history = await reader.call("getChatHistory", { chat_id: chat.id });
    for (const { files } of history.items) expect(files).toHaveLength(1);
  });

  test("during a deletion leaves no bytes of deleted messages", async () => {
    await using server = await startServer(noRates);
    const [alice] = await people(server.url, "alice");
    const chat = await groupOf(alice);
    const message_ids: string[] = [];
    for (let sent = 0; sent < 30; sent++) {
      const { id } = await upload(alice, chat.id, "a.txt", `file ${sent}`);
      message_ids.push((await sendFile(alice, chat.id, id)).id);
    }
    const kept = await upload(alice, chat.id, "kept.txt", "kept");
    expect(objects(server)).toHaveLength(31);
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids });
    await server.kill();
    await server.restart();
    await until(() => objects(server).length === 1, "the bytes are deleted");
    const { url } = await linkOf(alice.at(server.url), kept.id);
    expect(await (await fetch(url)).text()).toBe("kept");
  });
});
