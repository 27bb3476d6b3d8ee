import { afterAll, describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  failure,
  groupOf,
  type Person,
  pagesOf,
  people,
  say,
  search,
  transports,
} from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { announce, linkOf, put, upload } from "@parley/testkit/files.ts";
import { limits, startServer } from "@parley/testkit/server.ts";

const server = await startServer({
  ...serviceKeySetting(),
  ...limits({ file_bytes: 1000, upload_bytes_per_day: 100 * 64 * 1024 }),
});
afterAll(() => server[Symbol.asyncDispose]());
const [alice, bob, stranger] = await people(server.url, "alice", "bob", "stranger");
const chat = await groupOf(alice, bob);

describe("an upload", () => {
  test("is announced, sent, and part of a message that others receive", async () => {
    const socket = await bob.connect();
    const { file, upload_url } = await announce(alice, chat.id, "Grüße.txt", 5);
    expect(file).toEqual({
      id: expect.any(String),
      name: "Grüße.txt",
      type: "application/octet-stream",
      size: 5,
      width: null,
      height: null,
      duration_ms: null,
      status: "waiting",
      placeholder: null,
    });
    const { status, body } = await put(upload_url, "hello");
    const ready = { ...file, type: "text/plain", status: "ready" as const };
    expect({ status, body }).toEqual({ status: 200, body: { ok: true, result: ready } });
    const message = await alice.call("sendMessage", {
      chat_id: chat.id,
      content: "",
      file_ids: [file.id],
    });
    expect(message.files).toEqual([ready]);
    const event = await socket.event("events.messageNew", ({ id }) => id === message.id);
    expect(event.params).toEqual(message);
    expect((await bob.call("getMessage", { message_id: message.id })).files).toEqual([ready]);
  });

  test("that is sent again returns the file, and may be sent again after it broke off", async () => {
    const { file, upload_url } = await announce(alice, chat.id, "a.txt", 5);
    expect((await put(upload_url, "hell")).status).toBe(400);
    expect((await put(upload_url, "hello!")).status).toBe(413);
    const first = await put(upload_url, "hello");
    expect(first.body).toMatchObject({ ok: true, result: { id: file.id, status: "ready" } });
    expect(await put(upload_url, "HELLO")).toEqual(first);
    const { url } = await linkOf(alice, file.id);
    expect(await (await fetch(url)).text()).toBe("hello");
  });

  test("needs its own link", async () => {
    const { upload_url } = await announce(alice, chat.id, "a.txt", 5);
    const other = await announce(alice, chat.id, "b.txt", 5);
    const address = new URL(upload_url);
    address.pathname = new URL(other.upload_url).pathname;
    expect((await put(address.href, "hello")).status).toBe(403);
    address.search = "";
    expect((await put(address.href, "hello")).status).toBe(403);
    expect((await fetch(upload_url)).status).toBe(405);
  });

  test("has a name without paths and control characters, and a size that fits", async () => {
    for (const name of [
      "",
      "a/b",
      "..",
      "a\\b",
      "a\nb",
      "a\u0085b",
      "a\u000bb",
      "a\u007fb",
      "x".repeat(256),
    ]) {
      expect(await failure(announce(alice, chat.id, name, 5))).toMatchObject({
        code: "bad_request",
        parameters: { fields: { name: expect.any(String) } },
      });
    }
    expect(await failure(announce(alice, chat.id, "a.txt", 1001))).toMatchObject({
      code: "payload_too_large",
    });
    expect(await failure(announce(stranger, chat.id, "a.txt", 5))).toMatchObject({
      code: "forbidden",
    });
  });

  test("has a name without invisible and direction-changing characters", async () => {
    for (const [given, name] of [
      [" photo\u202egnp.exe\u200b ", "photognp.exe"],
      ["\u2066a\u2067b\u2068c\u2069.pdf", "abc.pdf"],
      ["a\u200e\u200f\u061c.txt", "a.txt"],
      ["\ufeffa\u00ad\u2060.txt", "a.txt"],
      ["a\u2028b\u2029.txt", "ab.txt"],
      ["דוח.pdf", "דוח.pdf"],
    ] as const) {
      const file = await upload(alice, chat.id, given, "hello");
      expect(file.name).toBe(name);
      const { headers } = await fetch((await linkOf(alice, file.id)).url);
      expect(headers.get("content-disposition")).toEndWith(
        `filename*=UTF-8''${encodeURIComponent(name)}`,
      );
    }
    for (const name of ["\u202e\u200b", ".\u200b.", "a\u202e/b"]) {
      expect(await failure(announce(alice, chat.id, name, 5))).toMatchObject({
        code: "bad_request",
        parameters: { fields: { name: expect.any(String) } },
      });
    }
  });

  test("can be cancelled until a message has it", async () => {
    const { file, upload_url } = await announce(alice, chat.id, "a.txt", 5);
    const cancel = (person: Person) => person.call("cancelUpload", { file_id: file.id });
    expect(await failure(cancel(bob))).toMatchObject({ code: "not_found" });
    await cancel(alice);
    expect((await put(upload_url, "hello")).status).toBe(404);
    expect(await failure(cancel(alice))).toMatchObject({ code: "not_found" });
    const { id } = await upload(alice, chat.id, "b.txt", "hello");
    await alice.call("sendMessage", { chat_id: chat.id, content: "b", file_ids: [id] });
    expect(await failure(alice.call("cancelUpload", { file_id: id }))).toMatchObject({
      code: "conflict",
    });
  });

  test("counts against a limit of bytes a day, as at least 64 KiB", async () => {
    const [carol] = await people(server.url, "carol");
    const own = await groupOf(carol);
    for (let sent = 0; sent < 100; sent++) await announce(carol, own.id, "a.txt", sent);
    const refused = await failure(announce(carol, own.id, "a.txt", 1));
    expect(refused).toMatchObject({ code: "rate_limited" });
    expect(refused.parameters?.retry_after).toBeGreaterThan(0);
  });
});

describe("uploads of a person and their agents", () => {
  test("count together against the limit of bytes a day", async () => {
    const [carol, dave] = await people(server.url, "carol", "dave");
    const [one, two] = [await externalAgent(carol), await externalAgent(carol)];
    const own = await groupOf(carol);
    for (let sent = 0; sent < 34; sent++) await announce(carol, own.id, "a.txt", sent);
    for (let sent = 0; sent < 33; sent++) {
      await announce(one.agent, one.chat.id, "a.txt", sent);
      await announce(two.agent, two.chat.id, "a.txt", sent);
    }
    for (const { agent, chat } of [{ agent: carol, chat: own }, one, two]) {
      const refused = await failure(announce(agent, chat.id, "a.txt", 1));
      expect(refused.code).toBe("rate_limited");
    }
    const other = await externalAgent(dave);
    await announce(other.agent, other.chat.id, "a.txt", 1);
  });

  test("count together against uploads_at_once", async () => {
    await using narrow = await startServer(
      limits({ uploads_at_once: 1, operations_per_second: 0 }),
    );
    const [carol] = await people(narrow.url, "carol");
    const { agent, chat: own } = await externalAgent(carol);
    const begun = await announce(carol, own.id, "a.txt", 5);
    const body = new TransformStream<Uint8Array, Uint8Array>();
    const writer = body.writable.getWriter();
    const sending = fetch(begun.upload_url, { method: "PUT", body: body.readable });
    await writer.write(Buffer.from("he"));
    // The first ones may arrive before the one that has begun.
    const statuses: number[] = [];
    while (statuses.length < 50 && statuses.at(-1) !== 429) {
      const { upload_url } = await announce(agent, own.id, "b.txt", 5);
      statuses.push((await put(upload_url, "hello")).status);
    }
    expect(statuses.at(-1)).toBe(429);
    await writer.write(Buffer.from("llo"));
    await writer.close();
    expect((await sending).status).toBe(200);
    await upload(agent, own.id, "b.txt", "hello");
  });
});

describe("an upload is refused", () => {
  const backend = new Backend(server.url);
  const ways: Record<string, [(owner: Person, chat_id: string) => Promise<unknown>, object]> = {
    "once its owner is suspended": [
      ({ username }) => backend.call("suspendAccount", { username }),
      { status: 403, body: { code: "suspended" } },
    ],
    "once its owner is erased": [
      ({ username }) => backend.call("eraseAccount", { username }),
      { status: 404, body: { code: "not_found" } },
    ],
    "once its owner has left the conversation": [
      (owner, chat_id) => owner.call("leaveChat", { chat_id }),
      { status: 403, body: { code: "forbidden" } },
    ],
    "once its owner was removed from the conversation": [
      ({ username }, chat_id) => alice.call("removeChatMember", { chat_id, username }),
      { status: 403, body: { code: "forbidden" } },
    ],
  };
  for (const [way, [exclude, refusal]] of Object.entries(ways)) {
    test(`${way}, also while its bytes arrive`, async () => {
      const [owner] = await people(server.url, "owner");
      const { id } = await groupOf(alice, owner);
      const { upload_url } = await announce(owner, id, "a.txt", 5);
      const begun = await announce(owner, id, "b.txt", 5);
      const body = new TransformStream<Uint8Array, Uint8Array>();
      const writer = body.writable.getWriter();
      const sending = fetch(begun.upload_url, { method: "PUT", body: body.readable });
      await writer.write(Buffer.from("he"));
      await exclude(owner, id);
      expect(await put(upload_url, "hello")).toMatchObject(refusal);
      await writer.write(Buffer.from("llo"));
      await writer.close();
      const response = await sending;
      expect({ status: response.status, body: await response.json() }).toMatchObject(refusal);
      expect(await put(begun.upload_url, "hello")).toMatchObject(refusal);
    });
  }
});

describe("a message", () => {
  const send = (file_ids: string[], more: object = {}) =>
    alice.call("sendMessage", { chat_id: chat.id, content: "", file_ids, ...more });

  test("takes only own files that are ready, unused, and of its conversation", async () => {
    const { file: waiting } = await announce(alice, chat.id, "a.txt", 5);
    expect(await failure(send([waiting.id]))).toMatchObject({ code: "conflict" });
    const foreign = await upload(bob, chat.id, "a.txt", "hello");
    expect(await failure(send([foreign.id]))).toMatchObject({ code: "not_found" });
    const elsewhere = await upload(alice, (await groupOf(alice)).id, "a.txt", "hello");
    expect(await failure(send([elsewhere.id]))).toMatchObject({ code: "not_found" });
    const file = await upload(alice, chat.id, "a.txt", "hello");
    expect(await failure(send([file.id, file.id]))).toMatchObject({ code: "bad_request" });
    await send([file.id]);
    expect(await failure(send([file.id]))).toMatchObject({ code: "conflict" });
    expect(await failure(send([]))).toMatchObject({ code: "bad_request" });
  });

  test("that is sent again with its files is the first one", async () => {
    const { id } = await upload(alice, chat.id, "a.txt", "hello");
    const first = await send([id], { client_msg_id: "with a file" });
    expect(await send([id], { client_msg_id: "with a file" })).toEqual(first);
  });

  test("is found by the names of its files", async () => {
    const { id } = await upload(alice, chat.id, "Quartalsbericht.txt", "hello");
    const message = await send([id]);
    const { items } = await search(bob, { query: "quartals" });
    expect(items.map((item) => item.message.id)).toEqual([message.id]);
    expect(items[0]?.snippet).toBe("**Quartalsbericht**.txt");
    await alice.call("editMessage", { message_id: message.id, content: "figures" });
    const edited = await search(bob, { query: "figures quartals" });
    expect(edited.items.map(({ snippet }) => snippet)).toEqual([
      "**figures** · **Quartalsbericht**.txt",
    ]);
  });

  test("may lose its words, but only with files", async () => {
    const { id } = await upload(alice, chat.id, "a.txt", "hello");
    const message = await send([id], { content: "words" });
    const edited = await alice.call("editMessage", { message_id: message.id, content: "" });
    expect(edited).toMatchObject({ content: "", files: [{ id }] });
    const plain = await say(alice, chat, "words");
    expect(
      await failure(alice.call("editMessage", { message_id: plain.id, content: " " })),
    ).toMatchObject({ code: "bad_request" });
  });

  test("takes its files with it when it is deleted", async () => {
    const { id } = await upload(alice, chat.id, "a.txt", "hello");
    const message = await send([id]);
    const { url } = await linkOf(bob, id);
    expect((await fetch(url)).status).toBe(200);
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message.id] });
    expect((await fetch(url)).status).toBe(404);
    expect(await bob.call("getFileLinks", { file_ids: [id] })).toEqual({ items: [] });
  });
});

describe("a link", () => {
  test("is for participants, works without a token, and is the same for a while", async () => {
    const { id } = await upload(alice, chat.id, "a.txt", "hello");
    expect(await bob.call("getFileLinks", { file_ids: [id] })).toEqual({ items: [] });
    await alice.call("sendMessage", { chat_id: chat.id, file_ids: [id] });
    expect(await failure(stranger.call("getFileLinks", { file_ids: [id] }))).toMatchObject({
      code: "forbidden",
    });
    const link = await linkOf(bob, id);
    expect(link).toMatchObject({ file_id: id, preview_url: null });
    expect(Date.parse(link.expires_at) - Date.now()).toBeGreaterThan(9 * 60_000);
    const response = await fetch(link.url);
    expect(await response.text()).toBe("hello");
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "content-disposition": `inline; filename="a.txt"; filename*=UTF-8''a.txt`,
      "content-security-policy": "sandbox; default-src 'none'",
      "x-content-type-options": "nosniff",
      "accept-ranges": "bytes",
      "cache-control": expect.stringMatching(/^private, max-age=\d+, immutable$/),
    });
  });

  test("is for nobody who has left, except one that was made before, until it ends", async () => {
    const group = await groupOf(alice, bob);
    const { id } = await upload(alice, group.id, "a.txt", "hello");
    await alice.call("sendMessage", { chat_id: group.id, content: "", file_ids: [id] });
    const { url, expires_at } = await linkOf(bob, id);
    await bob.call("leaveChat", { chat_id: group.id });
    expect(await failure(bob.call("getFileLinks", { file_ids: [id] }))).toMatchObject({
      code: "forbidden",
    });
    expect(await (await fetch(url)).text()).toBe("hello");
    expect(Date.parse(expires_at) - Date.now()).toBeLessThanOrEqual(20 * 60_000);
    const later = new URL(url);
    later.searchParams.set("expires", `${Number(later.searchParams.get("expires")) + 1}`);
    expect((await fetch(later)).status).toBe(403);
  });

  test("is returned in the order of the request, and not for a message that one has hidden", async () => {
    const ids: string[] = [];
    for (const name of ["a.txt", "b.txt", "c.txt"]) {
      ids.push((await upload(alice, chat.id, name, name)).id);
    }
    const { id } = await alice.call("sendMessage", {
      chat_id: chat.id,
      content: "",
      file_ids: ids,
    });
    const wanted = ids.toReversed();
    const { items } = await bob.call("getFileLinks", { file_ids: wanted });
    expect(items.map(({ file_id }) => file_id)).toEqual(wanted);
    await bob.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [id] });
    expect(await bob.call("getFileLinks", { file_ids: wanted })).toEqual({ items: [] });
  });

  test("answers ranges and conditional requests", async () => {
    const { id } = await upload(alice, chat.id, "a.txt", "0123456789");
    const { url } = await linkOf(alice, id);
    const get = async (headers: Record<string, string>, method = "GET") => {
      const response = await fetch(url, { headers, method });
      return [response.status, response.headers.get("content-range"), await response.text()];
    };
    expect(await get({ range: "bytes=2-4" })).toEqual([206, "bytes 2-4/10", "234"]);
    expect(await get({ range: "bytes=8-" })).toEqual([206, "bytes 8-9/10", "89"]);
    expect(await get({ range: "bytes=-3" })).toEqual([206, "bytes 7-9/10", "789"]);
    expect(await get({ range: "bytes=5-99" })).toEqual([206, "bytes 5-9/10", "56789"]);
    expect(await get({ range: "bytes=10-" })).toEqual([416, "bytes */10", ""]);
    for (const huge of ["99999999999999999999", "9".repeat(400)]) {
      const all = [206, "bytes 0-9/10", "0123456789"];
      expect(await get({ range: `bytes=0-${huge}` })).toEqual(all);
      expect(await get({ range: `bytes=-${huge}` })).toEqual(all);
      expect(await get({ range: `bytes=${huge}-` })).toEqual([416, "bytes */10", ""]);
    }
    for (const range of ["bytes=0-1,3-4", "bytes=5-2", "lines=1-2", "bytes=-"]) {
      expect(await get({ range })).toEqual([200, null, "0123456789"]);
    }
    const etag = (await fetch(url)).headers.get("etag") ?? "";
    expect(await get({ "if-none-match": etag })).toEqual([304, null, ""]);
    expect(await get({ range: "bytes=0-1", "if-range": etag })).toEqual([
      206,
      "bytes 0-1/10",
      "01",
    ]);
    expect(await get({ range: "bytes=0-1", "if-range": `"x"` })).toEqual([200, null, "0123456789"]);
    expect(await get({}, "HEAD")).toEqual([200, null, ""]);
  });

  test("never shows HTML or SVG in place", async () => {
    for (const [name, text, type] of [
      ["a.txt", "<!doctype html><script>alert(1)</script>", "text/html"],
      ["a.png", "<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"],
    ] as const) {
      const file = await upload(alice, chat.id, name, text);
      expect(file.type).toBe(type);
      const { headers } = await fetch((await linkOf(alice, file.id)).url);
      expect(headers.get("content-disposition")).toStartWith("attachment;");
    }
  });
});

describe.each(transports)("the files of a conversation over %s", (transport) => {
  const list = async (person: Person, query: Parameters<typeof alice.call<"getChatFiles">>[1]) => {
    await using caller = await person.via(transport);
    return await caller.call("getChatFiles", query);
  };

  test("are listed newest first, in pages that need not end with a message", async () => {
    const [carol, dora] = await people(server.url, "carol", "dora");
    const own = await groupOf(carol, dora);
    const sent: Message[] = [];
    for (const names of [["a.txt"], [], ["b.txt", "c.txt", "d.txt"]]) {
      const files = await Promise.all(names.map((name) => upload(carol, own.id, name, name)));
      const file_ids = files.map(({ id }) => id);
      const content = "words";
      const message = { chat_id: own.id, content, ...(names.length > 0 && { file_ids }) };
      sent.push(await carol.call("sendMessage", message));
    }
    const expected = sent
      .toReversed()
      .flatMap(({ id, seq, sender, created_at, files }) =>
        files.map((file) => ({ message_id: id, seq, sender, sent_at: created_at, file })),
      );
    expect(await list(dora, { chat_id: own.id })).toEqual({ items: expected, next_cursor: null });
    const pages = await pagesOf((place) => list(dora, { chat_id: own.id, limit: 2, ...place }));
    expect(pages).toEqual([expected.slice(0, 2), expected.slice(2)]);
  });

  test("are those of messages that the caller can see", async () => {
    const [carol, dora, erin] = await people(server.url, "carol", "dora", "erin");
    const own = await groupOf(carol, dora);
    const send = async (name: string) => {
      const { id } = await upload(carol, own.id, name, name);
      return carol.call("sendMessage", { chat_id: own.id, content: "", file_ids: [id] });
    };
    const [hidden, deleted] = [await send("hidden.txt"), await send("deleted.txt")];
    await send("seen.txt");
    await upload(carol, own.id, "not sent.txt", "hello");
    const ofMessage = ({ id }: Message) => ({ chat_id: own.id, message_ids: [id] });
    await dora.call("deleteMessagesForMe", ofMessage(hidden));
    await carol.call("deleteMessages", ofMessage(deleted));
    const names = async (person: Person) =>
      (await list(person, { chat_id: own.id })).items.map(({ file }) => file.name);
    expect(await names(dora)).toEqual(["seen.txt"]);
    expect(await names(carol)).toEqual(["seen.txt", "hidden.txt"]);
    expect(await failure(list(erin, { chat_id: own.id }))).toMatchObject({ code: "forbidden" });
    await dora.call("leaveChat", { chat_id: own.id });
    expect(await failure(list(dora, { chat_id: own.id }))).toMatchObject({ code: "forbidden" });
  });

  test("are not listed with the cursor of another list", async () => {
    for (const cursor of ["x", Buffer.from("[1,-1]").toString("base64url")]) {
      expect(await failure(list(alice, { chat_id: chat.id, cursor }))).toMatchObject({
        code: "bad_request",
        parameters: { fields: { cursor: expect.any(String) } },
      });
    }
  });

  test("are found behind a long part of the history without files", async () => {
    const [carol] = await people(server.url, "carol");
    const own = await groupOf(carol);
    const { id } = await upload(carol, own.id, "old.txt", "hello");
    await carol.call("sendMessage", { chat_id: own.id, content: "", file_ids: [id] });
    const service = new Backend(server.url);
    for (let sent = 0; sent < 2100; sent += 100) {
      const messages = Array.from({ length: 100 }, (_, n) => ({
        sender: carol.username,
        content: "words",
        created_at: "2020-01-01T00:00:00Z",
        client_msg_id: `${transport} ${sent + n}`,
      }));
      await service.call("importMessages", { chat_id: own.id, messages });
    }
    const first = await list(carol, { chat_id: own.id });
    expect(first).toEqual({ items: [], next_cursor: expect.any(String) });
    const next = await list(carol, { chat_id: own.id, cursor: first.next_cursor ?? "" });
    expect(next.items.map(({ file }) => file.name)).toEqual(["old.txt"]);
    expect(next.next_cursor).toBeNull();
  });
});

test("a server without a storage of files says so", async () => {
  await using plain = await startServer({ PARLEY_FILES: "off" });
  const [dora] = await people(plain.url, "dora");
  const own = await groupOf(dora);
  expect(await failure(announce(dora, own.id, "a.txt", 5))).toMatchObject({ code: "forbidden" });
  const { result } = await (await fetch(`${plain.url}/api/limits`)).json();
  expect(result.files_per_message).toBe(0);
  expect(await dora.call("getFileLinks", { file_ids: [Bun.randomUUIDv7()] })).toEqual({
    items: [],
  });
});

test("files of everybody together have at most stored_file_bytes", async () => {
  await using small = await startServer({ ...limits({ stored_file_bytes: 100 }) });
  const [ada, bob] = await people(small.url, "ada", "bob");
  const group = await groupOf(ada, bob);
  await announce(ada, group.id, "a.txt", 60);
  expect(await failure(announce(bob, group.id, "b.txt", 41))).toMatchObject({
    code: "forbidden",
    message: "forbidden: this server has no room for more files",
  });
  await announce(bob, group.id, "c.txt", 40);
});
