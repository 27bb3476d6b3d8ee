import { beforeAll, describe, expect, test } from "bun:test";
import { groupOf, type Person, people } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import type { Client, ClientOptions, LocalMessage } from "../src/index.ts";
import {
  clientOf,
  connected,
  contents,
  delivered,
  memoryBlobs,
  memoryStorage,
  online,
  until,
} from "./support/clients.ts";
import { picture, recordingFetch, textFile } from "./support/files.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
beforeAll(async () => {
  server = await sharedServer();
  [ann, bob] = await people(server.url, "ann", "bob");
});
const newChat = async (): Promise<string> => (await groupOf(ann, bob)).id;
const messages = (client: Client, chat: string) => client.model.get(`messages:${chat}`).items;
const last = (client: Client, chat: string): LocalMessage | undefined =>
  messages(client, chat).at(-1);

/** What the server has: the content of each message, and that of its files. */
async function stored(chat_id: string): Promise<[string, ...string[]][]> {
  using reader = clientOf(bob, server.url);
  const { items } = await bob.call("getChatHistory", { chat_id, limit: 100 });
  return await Promise.all(
    items.map(async ({ content, files }): Promise<[string, ...string[]]> => {
      const links = files.length > 0 ? await reader.links.get(files.map(({ id }) => id)) : [];
      const texts = links.map(async ({ url }) => (await fetch(url)).text());
      return [content, ...(await Promise.all(texts))];
    }),
  );
}

const offline = (client: Client) =>
  until(client, "status", () => client.status === "offline", "the loss of the connection");

const failed = (client: Client, chat: string) =>
  until(client, `messages:${chat}`, () =>
    messages(client, chat).find(({ delivery }) => delivery === "failed"),
  );

describe("a message with files", () => {
  test("is shown at once with its files, and keeps their object URLs when it is sent", async () => {
    const chat = await newChat();
    using client = await connected(ann, server.url);
    await client.model.openChat(chat);
    const id = client.model.send(chat, "look", { files: [picture(), textFile("hello")] });
    const shown = last(client, chat);
    expect(shown).toMatchObject({ id, content: "look", delivery: "sending" });
    expect(shown?.files).toMatchObject([
      { name: "dot.png", type: "image/png", status: "waiting", progress: 0 },
      { name: "notes.txt", size: 5, status: "waiting", progress: 0 },
    ]);
    const url = shown?.files[0]?.url ?? "";
    expect(await (await fetch(url)).bytes()).toEqual(await picture().bytes());
    // Only pictures, audio and video have one.
    expect(shown?.files[1]?.url).toBeUndefined();
    const seen: unknown[] = [];
    client.model.watch(`messages:${chat}`, () => seen.push(last(client, chat)?.files[0]?.url));
    await delivered(client, chat);
    await until(client, `messages:${chat}`, () => last(client, chat)?.seq === 1);
    expect(new Set(seen)).toEqual(new Set([url]));
    const sent = last(client, chat);
    expect(sent?.files).toMatchObject([
      { name: "dot.png", width: 1, height: 1, status: "ready", url },
      { name: "notes.txt", type: "text/plain", status: "ready" },
    ]);
    expect(last(client, chat)).toBe(sent as LocalMessage);
    using other = await connected(bob, server.url);
    await other.model.openChat(chat);
    expect(last(other, chat)?.files.map(({ url }) => url)).toEqual([undefined, undefined]);
  });

  test("is sent in order with other messages, while later files are uploaded already", async () => {
    const chat = await newChat();
    using client = await connected(ann, server.url);
    await client.model.openChat(chat);
    client.model.send(chat, "one");
    client.model.send(chat, "two", { files: [textFile("2a"), textFile("2b".repeat(100_000))] });
    client.model.send(chat, "three");
    client.model.send(chat, "", { files: [textFile("4")] });
    expect(contents(client, chat)).toEqual(["one", "two", "three", ""]);
    await delivered(client, chat);
    expect(await stored(chat)).toEqual([
      ["one"],
      ["two", "2a", "2b".repeat(100_000)],
      ["three"],
      ["", "4"],
    ]);
  });

  test("answers another message", async () => {
    const chat = await newChat();
    using client = await connected(ann, server.url);
    await client.model.openChat(chat);
    client.model.send(chat, "one");
    await delivered(client, chat);
    const replyTo = last(client, chat)?.id ?? "";
    client.model.send(chat, "", { replyTo, files: [textFile("2")] });
    await delivered(client, chat);
    expect(last(client, chat)).toMatchObject({ reply_to_id: replyTo, files: [{ size: 1 }] });
  });

  for (const direction of ["toServer", "toClient"] as const) {
    test(`is sent exactly once and in order wherever the connection is cut (${direction})`, async () => {
      const chat = await newChat();
      await using proxy = await FaultyProxy.to(server.url);
      using client = await connected(ann, proxy.url);
      await client.model.openChat(chat);
      const expected: [string, ...string[]][] = [];
      for (let bytes = 0; bytes < 2400; bytes += 97) {
        proxy.cutAfter(bytes, direction);
        const text = `${bytes} `.repeat(200);
        expected.push([`${bytes} a`, text], [`${bytes} b`], [`${bytes} c`, "c"]);
        client.model.send(chat, `${bytes} a`, { files: [textFile(text)] });
        client.model.send(chat, `${bytes} b`);
        client.model.send(chat, `${bytes} c`, { files: [textFile("c")] });
        await delivered(client, chat);
        proxy.reset();
      }
      expect(await stored(chat)).toEqual(expected.slice(-100));
      await online(client);
      expect(contents(client, chat)).toEqual(expected.map(([content]) => content));
    });
  }

  test("written offline is sent after the reconnect", async () => {
    const chat = await newChat();
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(ann, proxy.url);
    await client.model.openChat(chat);
    proxy.refuse(true);
    proxy.cut();
    await offline(client);
    client.model.send(chat, "one", { files: [textFile("1")] });
    client.model.send(chat, "two");
    expect(last(client, chat)?.delivery).toBe("sending");
    proxy.reset();
    await delivered(client, chat);
    expect(await stored(chat)).toEqual([["one", "1"], ["two"]]);
  });

  test("whose file is refused fails without blocking others, and can be retried and discarded", async () => {
    await using small = await startServer(limits({ file_bytes: 10 }));
    const [cat] = await people(small.url, "cat");
    const { id: chat } = await groupOf(cat);
    const { fetch, count } = recordingFetch();
    using client = clientOf(cat, small.url, { fetch });
    const files = [textFile("small"), textFile("more than ten", "large.txt")];
    const id = client.model.send(chat, "one", { files });
    client.model.send(chat, "two");
    const message = await failed(client, chat);
    const failure = expect.stringContaining("large.txt: ");
    expect(message).toMatchObject({ id, failure, isRejected: true });
    expect(message.files[1]?.error).toContain("10 bytes");
    await until(client, `messages:${chat}`, () => contents(client, chat).join() === "one");
    const isReady = () => last(client, chat)?.files[0]?.status === "ready";
    await until(client, `messages:${chat}`, isReady);
    client.model.retry(id);
    expect(last(client, chat)?.files[1]?.error).toBeUndefined();
    expect(last(client, chat)?.isRejected).toBeUndefined();
    await failed(client, chat);
    // The file that is uploaded is not uploaded again, and the other one is refused before.
    expect(count("upload")).toBe(1);
    client.model.discard(id);
    expect(messages(client, chat)).toEqual([]);
    while (count("cancelUpload") === 0) await Bun.sleep(1);
    const { items } = await cat.call("getChatHistory", { chat_id: chat });
    expect(items.map(({ content }) => content)).toEqual(["two"]);
  });

  test("with more files than a message can have fails before any is uploaded", async () => {
    const chat = await newChat();
    const { fetch, calls } = recordingFetch();
    using client = clientOf(ann, server.url, { fetch });
    client.model.send(chat, "", { files: Array.from({ length: 11 }, () => textFile("a")) });
    expect(await failed(client, chat)).toMatchObject({ failure: expect.stringContaining("10") });
    expect(calls).toEqual([]);
  });

  test("whose file is deleted from the disk fails without blocking others", async () => {
    const chat = await newChat();
    const gone = () => Promise.reject(new DOMException("deleted", "NotReadableError"));
    const withoutUploads = ((url: string, request: RequestInit) =>
      request.method === "PUT" ? gone() : fetch(url, request)) as typeof fetch;
    const file = Object.assign(textFile("a"), { slice: () => ({ arrayBuffer: gone }) });
    using client = clientOf(ann, server.url, { fetch: withoutUploads });
    client.model.send(chat, "one", { files: [file] });
    client.model.send(chat, "two");
    const { failure } = await failed(client, chat);
    expect(failure).toContain("changed or deleted");
    await until(client, `messages:${chat}`, () => contents(client, chat).join() === "one");
    expect(await stored(chat)).toEqual([["two"]]);
  });

  test("that is discarded cancels its uploads", async () => {
    const chat = await newChat();
    const blobs = memoryBlobs();
    const { fetch: recorded, count } = recordingFetch();
    const discarded = Promise.withResolvers<void>();
    const withLateUploads = (async (url: string, request: RequestInit) => {
      const response = await recorded(url, request);
      if (request.method === "PUT") await discarded.promise;
      return response;
    }) as typeof fetch;
    using client = clientOf(ann, server.url, { fetch: withLateUploads, blobs });
    const id = client.model.send(chat, "never", { files: [textFile("never")] });
    while (count("upload") === 0) await Bun.sleep(0);
    client.model.discard(id);
    discarded.resolve();
    client.model.send(chat, "next");
    await until(client, `messages:${chat}`, () => messages(client, chat).length === 0);
    expect(await stored(chat)).toEqual([["next"]]);
    while (count("cancelUpload") === 0) await Bun.sleep(1);
    while (blobs.items.size > 0) await Bun.sleep(1);
  });

  test("uploads its files again if the service has deleted them", async () => {
    const chat = await newChat();
    let uploads = 0;
    /** Deletes the first file before the client knows that it is uploaded. */
    const deleting = (async (url: string, request: RequestInit) => {
      const response = await fetch(url, request);
      if (request.method !== "PUT" || ++uploads > 1) return response;
      const { result } = (await response.clone().json()) as { result: { id: string } };
      await ann.call("cancelUpload", { file_id: result.id });
      return response;
    }) as typeof fetch;
    using client = await connected(ann, server.url, { fetch: deleting });
    await client.model.openChat(chat);
    client.model.send(chat, "one", { files: [textFile("1")] });
    await delivered(client, chat);
    expect(await stored(chat)).toEqual([["one", "1"]]);
    expect(uploads).toBe(2);
  });
});

/** A client that has lost its connection, which the proxy refuses until it is reset. */
async function disconnected(proxy: FaultyProxy, options: ClientOptions): Promise<Client> {
  const client = await connected(ann, proxy.url, options);
  proxy.refuse(true);
  proxy.cut();
  await offline(client);
  return client;
}

describe("after a reload", () => {
  test("messages with files are shown with their previews and sent", async () => {
    const chat = await newChat();
    const [storage, blobs] = [memoryStorage(), memoryBlobs()];
    await using proxy = await FaultyProxy.to(server.url);
    const first = await disconnected(proxy, { storage, blobs });
    first.model.send(chat, "one", { files: [textFile("1"), picture()] });
    first.model.send(chat, "two");
    first.close();
    using second = clientOf(ann, proxy.url, { storage, blobs });
    // The preview is there before the connection.
    const url = await until(
      second,
      `messages:${chat}`,
      () => messages(second, chat)[0]?.files[1]?.url,
    );
    expect(await (await fetch(url)).bytes()).toEqual(await picture().bytes());
    expect(messages(second, chat)[0]?.files).toMatchObject([
      { name: "notes.txt" },
      { name: "dot.png" },
    ]);
    proxy.reset();
    await second.connect();
    await second.model.openChat(chat);
    await delivered(second, chat);
    await until(second, `messages:${chat}`, () => messages(second, chat).length === 2);
    expect((await stored(chat)).map(([content, file]) => [content, file])).toEqual([
      ["one", "1"],
      ["two", undefined],
    ]);
    while (blobs.items.size > 0) await Bun.sleep(1);
  });

  test("what is uploaded already is not uploaded again", async () => {
    const chat = await newChat();
    const [storage, blobs] = [memoryStorage(), memoryBlobs()];
    const withoutSending = ((url: string, request: RequestInit) =>
      url.endsWith("/sendMessage")
        ? Promise.reject(new Error("cut"))
        : fetch(url, request)) as typeof fetch;
    // The account is known from the first connection.
    (await connected(ann, server.url, { storage })).close();
    const first = clientOf(ann, server.url, { storage, blobs, fetch: withoutSending });
    first.model.send(chat, "one", { files: [picture()] });
    await until(first, `messages:${chat}`, () => last(first, chat)?.files[0]?.status === "ready");
    first.close();
    const { fetch: recorded, count } = recordingFetch();
    using second = clientOf(ann, server.url, { storage, blobs, fetch: recorded });
    const url = await until(second, `messages:${chat}`, () => last(second, chat)?.files[0]?.url);
    await second.connect();
    await second.model.openChat(chat);
    await delivered(second, chat);
    await until(second, `messages:${chat}`, () => last(second, chat)?.seq === 1);
    expect(last(second, chat)?.files).toMatchObject([{ name: "dot.png", status: "ready", url }]);
    expect(await (await fetch(url)).bytes()).toEqual(await picture().bytes());
    expect([count("createUpload"), count("upload")]).toEqual([0, 0]);
  });

  test("a message whose files are gone is failed, and others are sent", async () => {
    const chat = await newChat();
    const storage = memoryStorage();
    await using proxy = await FaultyProxy.to(server.url);
    const first = await disconnected(proxy, { storage });
    const id = first.model.send(chat, "one", { files: [textFile("1")] });
    first.model.send(chat, "two");
    first.close();
    using second = clientOf(ann, proxy.url, { storage, blobs: memoryBlobs() });
    const message = await failed(second, chat);
    const failure = expect.stringContaining("no longer available");
    expect(message).toMatchObject({ id, failure, isRejected: true });
    expect(message.files[0]?.error).toContain("no longer available");
    proxy.reset();
    await second.connect();
    await until(second, `messages:${chat}`, () => contents(second, chat).join() === "one");
    expect(await stored(chat)).toEqual([["two"]]);
    second.model.retry(id);
    await failed(second, chat);
    second.model.discard(id);
    expect(messages(second, chat)).toEqual([]);
  });

  test("a message whose files cannot be read at the moment can be retried", async () => {
    const chat = await newChat();
    const [storage, blobs] = [memoryStorage(), memoryBlobs()];
    await using proxy = await FaultyProxy.to(server.url);
    const first = await disconnected(proxy, { storage, blobs });
    const id = first.model.send(chat, "one", { files: [textFile("1")] });
    first.close();
    proxy.reset();
    let isBroken = true;
    const get = async (key: string) => {
      if (isBroken) throw new Error("the database was closed");
      return blobs.get(key);
    };
    using second = await connected(ann, proxy.url, { storage, blobs: { ...blobs, get } });
    await second.model.openChat(chat);
    const { failure, isRejected = false } = await failed(second, chat);
    expect(failure).toBe("notes.txt: The file cannot be read at the moment.");
    expect(isRejected).toBe(false);
    isBroken = false;
    second.model.retry(id);
    await delivered(second, chat);
    expect(await stored(chat)).toEqual([["one", "1"]]);
  });

  test("signing out deletes the files of unsent messages", async () => {
    const chat = await newChat();
    const [storage, blobs] = [memoryStorage(), memoryBlobs()];
    const [cat] = await people(server.url, "cat");
    const client = await connected(cat, server.url, { storage, blobs });
    const id = client.model.send(chat, "of a stranger", { files: [textFile("1")] });
    await failed(client, chat);
    expect([...blobs.items.keys()]).toEqual([`${id}/0`]);
    await client.leave();
    expect(blobs.items.size).toBe(0);
    client.close();
  });

  const endings: Record<string, (client: Client, person: Person) => Promise<unknown>> = {
    "the account is deleted": (client) => client.deleteMe({ password: "correct horse battery" }),
    "the session was ended elsewhere": async (client, person) => {
      await person.call("signOut", {});
      await until(client, "status", () => client.status === "signed_out");
    },
  };
  for (const [ending, end] of Object.entries(endings)) {
    test(`leaving after ${ending} deletes drafts, unsent messages and their files`, async () => {
      const chat = await newChat();
      const [storage, blobs] = [memoryStorage(), memoryBlobs()];
      const [cat] = await people(server.url, "cat");
      using client = await connected(cat, server.url, { storage, blobs });
      client.model.setDraft(chat, "half a thought");
      client.model.send(chat, "of a stranger", { files: [textFile("1")] });
      await failed(client, chat);
      expect([storage.items.size, blobs.items.size]).toEqual([2, 1]);
      await end(client, cat);
      await client.leave();
      expect([storage.items.size, blobs.items.size]).toEqual([0, 0]);
    });
  }
});

test("two tabs with a shared storage send a message with files once", async () => {
  const chat = await newChat();
  const [storage, blobs] = [memoryStorage(), memoryBlobs()];
  await using proxy = await FaultyProxy.to(server.url);
  using one = await connected(ann, proxy.url, { storage, blobs });
  await one.model.openChat(chat);
  proxy.refuse(true);
  proxy.cut();
  await offline(one);
  one.model.send(chat, "from the first", { files: [textFile("1")] });
  using two = await connected(ann, server.url, { storage, blobs });
  await two.model.openChat(chat);
  proxy.reset();
  two.model.send(chat, "from the second", { files: [textFile("2")] });
  await Promise.all([delivered(one, chat), delivered(two, chat)]);
  await online(one);
  expect(await stored(chat)).toEqual([
    ["from the first", "1"],
    ["from the second", "2"],
  ]);
  for (const tab of [one, two]) {
    await until(tab, `messages:${chat}`, () => messages(tab, chat).length === 2);
  }
  while (blobs.items.size > 0) await Bun.sleep(1);
});
