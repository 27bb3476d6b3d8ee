import { beforeAll, describe, expect, setSystemTime, test } from "bun:test";
import { groupOf, type Person, people } from "@parley/testkit/client.ts";
import { upload } from "@parley/testkit/files.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { limits, startServer, type TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { nameOf } from "../src/files/name.ts";
import { isCallError } from "../src/index.ts";
import { clientOf, codeOf, connected, until } from "./support/clients.ts";
import { recordingFetch, textFile } from "./support/files.ts";

let server: TestServer;
let ann: Person;
let bob: Person;
let chat: string;
beforeAll(async () => {
  server = await sharedServer();
  [ann, bob] = await people(server.url, "ann", "bob");
  chat = (await groupOf(ann, bob)).id;
});
/** What a file contains, loaded with a link. */
async function load(person: Person, fileId: string): Promise<string> {
  using client = clientOf(person, server.url);
  const [link] = await client.links.get([fileId]);
  return (await fetch(link?.url ?? "")).text();
}

describe("an upload", () => {
  for (const transport of ["socket", "HTTP"]) {
    test(`returns a file that a message can have (${transport})`, async () => {
      using client =
        transport === "socket" ? await connected(ann, server.url) : clientOf(ann, server.url);
      const progress: number[] = [];
      const file = await client.upload(chat, textFile("hello"), {
        onProgress: (each) => progress.push(each),
      });
      expect(file).toMatchObject({
        name: "notes.txt",
        size: 5,
        type: "text/plain",
        status: "ready",
      });
      expect(progress[0]).toBe(0);
      expect(progress.at(-1)).toBe(1);
      const sent = await client.sendMessage({ chat_id: chat, content: "", file_ids: [file.id] });
      expect(sent.files).toEqual([file]);
      expect(await load(bob, file.id)).toBe("hello");
    });
  }

  test("takes the given name, or that of the blob", async () => {
    using client = clientOf(ann, server.url);
    const named = await client.upload(chat, new Blob(["a"]), { name: "a.txt" });
    const nameless = await client.upload(chat, new Blob(["a"]));
    expect([named.name, nameless.name]).toEqual(["a.txt", "file"]);
    expect(nameOf(new File([], "C:\\folder\\a\nb.txt"))).toBe("a b.txt");
    expect(nameOf(new File([], ".."))).toBe("file");
    expect(nameOf(new File([], `${"🎉".repeat(200)}.tar.gz`))).toMatch(/^(🎉){125,126}\.gz$/u);
  });

  for (const direction of ["toServer", "toClient"] as const) {
    test(`arrives wherever its connection is cut (${direction})`, async () => {
      await using proxy = await FaultyProxy.to(server.url);
      using client = clientOf(ann, proxy.url);
      for (let bytes = 0; bytes < 1500; bytes += 171) {
        const text = `${bytes} `.repeat(300);
        proxy.cutAfter(bytes, direction);
        const file = await client.upload(chat, textFile(text));
        proxy.reset();
        expect(await load(ann, file.id)).toBe(text);
      }
    });
  }

  test("that is aborted rejects at once and leaves nothing behind", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    const requests: string[] = [];
    const spy = ((url: string, request: RequestInit) => {
      requests.push(`${request.method} ${new URL(url).pathname.split("/").at(-1)}`);
      if (request.method === "PUT") proxy.stall("toServer");
      return fetch(url, request);
    }) as typeof fetch;
    using client = clientOf(ann, proxy.url, { fetch: spy });
    const abort = new AbortController();
    let hasStarted = () => {};
    const started = new Promise<void>((resolve) => {
      hasStarted = resolve;
    });
    const { signal } = abort;
    const uploading = client.upload(chat, textFile("never"), { signal, onProgress: hasStarted });
    await started;
    abort.abort(new Error("enough"));
    const rejected = expect(uploading).rejects.toThrow("enough");
    proxy.reset();
    await rejected;
    while (!requests.includes("POST cancelUpload")) await Bun.sleep(1);
    expect(requests.filter((each) => each === "POST createUpload")).toHaveLength(1);
    const late = client.upload(chat, textFile("never"), { signal });
    await expect(late).rejects.toThrow("enough");
  });

  test("waits while there is no connection", async () => {
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(ann, proxy.url);
    proxy.refuse(true);
    proxy.cut();
    await until(client, "status", () => client.status === "offline");
    const uploading = client.upload(chat, textFile("later"));
    proxy.reset();
    expect(await load(ann, (await uploading).id)).toBe("later");
  });

  test("that the service refuses fails like any call", async () => {
    await using small = await startServer(limits({ file_bytes: 10, upload_bytes_per_day: 65_536 }));
    const [cat] = await people(small.url, "cat");
    const own = await groupOf(cat);
    using client = clientOf(cat, small.url);
    expect(await codeOf(client.upload(own.id, textFile("more than ten")))).toBe(
      "payload_too_large",
    );
    expect(await codeOf(client.upload(own.id, textFile("a"), { name: "a/b" }))).toBe("bad_request");
    await client.upload(own.id, textFile("0123456789"));
    // The limit of a day is not waited out.
    const error = await client.upload(own.id, textFile("0123456789")).catch((each) => each);
    expect(isCallError(error) && error.code).toBe("rate_limited");
    using stranger = clientOf(cat, server.url);
    expect(await codeOf(stranger.upload(chat, textFile("a")))).toBe("unauthorized");
  });

  test("that a proxy in front of the service refuses is not repeated", async () => {
    const nginx = ((url: string, request: RequestInit) =>
      request.method === "PUT"
        ? Promise.resolve(new Response("<html>413</html>", { status: 413 }))
        : fetch(url, request)) as typeof fetch;
    using client = clientOf(ann, server.url, { fetch: nginx });
    expect(await codeOf(client.upload(chat, textFile("a")))).toBe("payload_too_large");
  });

  test("runs with at most two others", async () => {
    let [running, most] = [0, 0];
    const counting = (async (url: string, request: RequestInit) => {
      if (request.method !== "PUT") return fetch(url, request);
      most = Math.max(most, ++running);
      return fetch(url, request).finally(() => running--);
    }) as typeof fetch;
    using client = clientOf(ann, server.url, { fetch: counting });
    const texts = Array.from({ length: 8 }, (_, count) => `${count}`);
    const files = await Promise.all(texts.map((text) => client.upload(chat, textFile(text))));
    expect(await Promise.all(files.map(({ id }) => load(ann, id)))).toEqual(texts);
    expect(most).toBe(3);
  });
});

describe("links", () => {
  test("are fetched together, are absolute, and are kept", async () => {
    const files = [];
    for (const text of ["a", "b", "c"]) files.push(await upload(ann, chat, "a.txt", text));
    const ids = files.map(({ id }) => id);
    const calls: string[][] = [];
    const counting = (async (url: string, request: RequestInit) => {
      calls.push(JSON.parse(`${request.body}`).file_ids);
      const response = await fetch(url, request);
      // As a server answers that does not know its own address.
      const text = (await response.text()).replaceAll(server.url, "http://backend.internal:80");
      return new Response(text, response);
    }) as typeof fetch;
    using client = clientOf(ann, server.url, { fetch: counting });
    expect(client.links.peek(ids[0] ?? "")).toBeUndefined();
    const [one, other] = await Promise.all([
      client.links.get(ids.slice(0, 2)),
      client.links.get(ids.slice(1)),
    ]);
    expect(calls).toEqual([ids]);
    expect([...one, ...other].map(({ file_id }) => file_id)).toEqual([
      ...ids.slice(0, 2),
      ...ids.slice(1),
    ]);
    expect(client.links.peek(ids[1] ?? "")).toBe(one[1]);
    expect(await client.links.get(ids.slice(0, 2))).toEqual(one);
    expect(calls).toHaveLength(1);
    expect(await (await fetch(one[0]?.url ?? "")).text()).toBe("a");
    await client.links.renew(ids.slice(0, 1));
    expect(calls).toEqual([ids, ids.slice(0, 1)]);
  });

  test("of files that are gone or out of reach are left out", async () => {
    const [cat] = await people(server.url, "cat");
    const foreign = await upload(cat, (await groupOf(cat)).id, "a.txt", "a");
    const own = await upload(ann, chat, "a.txt", "a");
    using client = await connected(ann, server.url);
    const found = await client.links.get([foreign.id, own.id, Bun.randomUUIDv7()]);
    expect(found.map(({ file_id }) => file_id)).toEqual([own.id]);
  });

  test("are fetched 100 at a time", async () => {
    const sizes: number[] = [];
    const counting = ((url: string, request: RequestInit) => {
      sizes.push(JSON.parse(`${request.body}`).file_ids.length);
      return fetch(url, request);
    }) as typeof fetch;
    using client = clientOf(ann, server.url, { fetch: counting });
    await client.links.get(Array.from({ length: 230 }, () => Bun.randomUUIDv7()));
    expect(sizes).toEqual([100, 100, 30]);
  });

  test("are fetched again before they expire", async () => {
    const { id } = await upload(ann, chat, "a.txt", "a");
    const { fetch: recorded, count } = recordingFetch();
    using client = clientOf(ann, server.url, { fetch: recorded });
    const [first] = await client.links.get([id]);
    const remainingMs = Date.parse(first?.expires_at ?? "") - Date.now();
    expect(client.links.peek(id)).toBe(first);
    setSystemTime(Date.now() + remainingMs - 60_000);
    try {
      expect(client.links.peek(id)).toBeUndefined();
      await client.links.get([id]);
      expect(count("getFileLinks")).toBe(2);
      // A clock that is wrong does not make the links of the service look expired.
      setSystemTime(Date.now() + 24 * 60 * 60_000);
      expect(await client.links.get([id])).toHaveLength(1);
    } finally {
      setSystemTime();
    }
  });

  test("that are watched arrive after the connection is back", async () => {
    const { id } = await upload(ann, chat, "a.txt", "a");
    await using proxy = await FaultyProxy.to(server.url);
    using client = await connected(ann, proxy.url);
    proxy.refuse(true);
    proxy.cut();
    await until(client, "status", () => client.status === "offline");
    const known = new Promise<void>((resolve) => {
      client.links.watch([id], resolve);
    });
    proxy.reset();
    await known;
    expect(client.links.peek(id)?.file_id).toBe(id);
  });
});
