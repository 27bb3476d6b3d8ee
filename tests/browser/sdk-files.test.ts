/// <reference lib="dom" />
import { expect } from "bun:test";
import { join } from "node:path";
import { groupOf, type Person } from "@parley/testkit/client.ts";
import type { BrowserContext, Page } from "playwright-core";
import type * as Sdk from "../../packages/client/src/index.ts";
import { type Harness, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

const SDK = join(import.meta.dir, "../../packages/client/src/index.ts");

/** What the page of a test has: a client with the storages of the browser. */
interface Sandbox {
  sdk: typeof Sdk;
  client: Sdk.Client;
}

async function bundle(): Promise<string> {
  const { outputs } = await Bun.build({ entrypoints: [SDK], target: "browser" });
  return outputs[0]?.text() ?? "";
}

/** A page of the server's origin that has a client of the person. */
async function openPage(context: BrowserContext, url: string, person: Person): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${url}/api/limits`);
  await startClient(page, person);
  return page;
}

async function startClient(page: Page, { token }: Person): Promise<void> {
  const code = await bundle();
  await page.evaluate(
    async ({ code, token }) => {
      const module = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
      const sdk: typeof Sdk = await import(module);
      const blobs = sdk.indexedDbBlobs();
      const client = sdk.createClient({ token, storage: localStorage, blobs });
      await client.connect();
      Object.assign(window, { sdk, client });
    },
    { code, token },
  );
}

async function setUp({ person, browser }: Harness) {
  const [ada, bob] = await Promise.all([person("ada"), person("bob")]);
  const { id: chat } = await groupOf(ada, bob);
  const context = await browser.newContext({ bypassCSP: true });
  const uploads: string[] = [];
  context.on("request", (request) => {
    if (request.method() === "PUT") uploads.push(request.url());
  });
  return { ada, bob, chat, context, uploads, [Symbol.asyncDispose]: () => context.close() };
}

/** Limits what the page can send, so that an upload takes its time. */
async function slowDown(page: Page, bytesPerSecond: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("Network.emulateNetworkConditions", {
    offline: false,
    latency: 0,
    downloadThroughput: -1,
    uploadThroughput: bytesPerSecond,
  });
}

const filesOf = async (person: Person, chat_id: string) =>
  (await person.call("getChatHistory", { chat_id })).items.map(({ content, files }) => ({
    content,
    files: files.map(({ name, size }) => ({ name, size })),
  }));

test("an upload in a browser reports its progress, and can be aborted", async () => {
  await using own = await setUp(harness());
  const page = await openPage(own.context, harness().url, own.ada);
  await slowDown(page, 2_000_000);
  const { progress, file } = await page.evaluate(async (chat) => {
    const { client } = window as unknown as Sandbox;
    const progress: number[] = [];
    const file = await client.upload(chat, new File([new Uint8Array(2_000_000)], "zeros.bin"), {
      onProgress: (each) => progress.push(each),
    });
    return { progress, file };
  }, own.chat);
  expect(file).toMatchObject({ name: "zeros.bin", size: 2_000_000, status: "ready" });
  expect(progress).toEqual(progress.toSorted((one, other) => one - other));
  expect([progress[0], progress.at(-1)]).toEqual([0, 1]);
  expect(progress.some((each) => each > 0 && each < 1)).toBe(true);
  const reason = await page.evaluate(async (chat) => {
    const { client } = window as unknown as Sandbox;
    const abort = new AbortController();
    const upload = client.upload(chat, new File([new Uint8Array(2_000_000)], "zeros.bin"), {
      signal: abort.signal,
      onProgress: (each) => each > 0 && abort.abort("enough"),
    });
    return upload.catch((thrown: unknown) => thrown);
  }, own.chat);
  expect(reason).toBe("enough");
});

test("files of unsent messages survive a reload of the page", async () => {
  await using own = await setUp(harness());
  const page = await openPage(own.context, harness().url, own.ada);
  await page.evaluate(async (chat) => {
    const { client, sdk } = window as unknown as Sandbox;
    client.close();
    const id = client.model.send(chat, "later", { files: [new File(["hello"], "notes.txt")] });
    const blobs = sdk.indexedDbBlobs();
    while (!(await blobs.get(`${id}/0`))) await new Promise(requestAnimationFrame);
  }, own.chat);
  expect(await filesOf(own.bob, own.chat)).toEqual([]);
  await page.reload();
  await startClient(page, own.ada);
  await page.evaluate(async (chat) => {
    const { client } = window as unknown as Sandbox;
    const isSent = () => client.model.get(`messages:${chat}`).items.length === 0;
    while (!isSent()) await new Promise(requestAnimationFrame);
  }, own.chat);
  expect(await filesOf(own.bob, own.chat)).toEqual([
    { content: "later", files: [{ name: "notes.txt", size: 5 }] },
  ]);
  const key = `parley:outbox:${own.ada.username}`;
  expect(await page.evaluate((each) => localStorage.getItem(each), key)).toBeNull();
});

test("a tab that is opened during an upload does not upload the same file", async () => {
  await using own = await setUp(harness());
  const first = await openPage(own.context, harness().url, own.ada);
  await slowDown(first, 500_000);
  await first.evaluate(async (chat) => {
    const { client } = window as unknown as Sandbox;
    client.model.send(chat, "large", {
      files: [new File([new Uint8Array(1_500_000)], "large.bin")],
    });
    const progress = () => client.model.get(`messages:${chat}`).items[0]?.files[0]?.progress ?? 0;
    while (progress() === 0) await new Promise(requestAnimationFrame);
  }, own.chat);
  const second = await openPage(own.context, harness().url, own.ada);
  for (const page of [first, second]) {
    await page.evaluate(async (chat) => {
      const { client } = window as unknown as Sandbox;
      const isSent = () => client.model.get(`messages:${chat}`).items.length === 0;
      // Frames of a page in the background do not come.
      while (!isSent()) await new Promise((resolve) => setTimeout(resolve, 10));
    }, own.chat);
  }
  expect(await filesOf(own.bob, own.chat)).toEqual([
    { content: "large", files: [{ name: "large.bin", size: 1_500_000 }] },
  ]);
  expect(own.uploads).toHaveLength(1);
});

test("a file counts as stored when its transaction is committed", async () => {
  await using own = await setUp(harness());
  const page = await openPage(own.context, harness().url, own.ada);
  const outcome = await page.evaluate(async () => {
    const { sdk } = window as unknown as Sandbox;
    const { put } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function (this: IDBObjectStore, ...given) {
      const request = put.apply(this, given);
      request.addEventListener("success", () => this.transaction.abort());
      return request;
    };
    const set = sdk.indexedDbBlobs().set("key", new Blob(["hello"]));
    return set.then(
      () => "stored",
      () => "refused",
    );
  });
  expect(outcome).toBe("refused");
});

test("files can be stored and read after the browser has closed the database", async () => {
  await using own = await setUp(harness());
  const page = await openPage(own.context, harness().url, own.ada);
  const read = await page.evaluate(async () => {
    const { sdk } = window as unknown as Sandbox;
    const opened: IDBDatabase[] = [];
    const { transaction } = IDBDatabase.prototype;
    IDBDatabase.prototype.transaction = function (this: IDBDatabase, ...given) {
      opened.push(this);
      return transaction.apply(this, given);
    };
    const blobs = sdk.indexedDbBlobs();
    await blobs.set("one", new Blob(["1"]));
    for (const database of opened) database.close();
    const one = await blobs.get("one");
    for (const database of opened) database.close();
    await blobs.set("two", new Blob(["2"]));
    const two = await blobs.get("two");
    return [await one?.text(), await two?.text()];
  });
  expect(read).toEqual(["1", "2"]);
});
