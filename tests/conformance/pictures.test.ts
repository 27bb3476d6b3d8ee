import { afterAll, describe, expect, test } from "bun:test";
import type { OutputOf } from "@parley/protocol";
import { failure, groupOf, type Person, people } from "@parley/testkit/client.ts";
import { announce, linkOf, pngOf, put, upload, uploadPicture } from "@parley/testkit/files.ts";
import { limits, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import { linesOf, unzip } from "@parley/testkit/zip.ts";

const server = await startServer({});
afterAll(() => server[Symbol.asyncDispose]());
const [alice, bob, stranger] = await people(server.url, "alice", "bob", "stranger");
const chat = await groupOf(alice, bob);

type Overview = Extract<OutputOf<"getUpdates">, { accounts: unknown }>;

const profileOf = async (reader: Person, { username }: Person) => {
  const { items } = await reader.call("getProfiles", { usernames: [username] });
  return items[0];
};

/** Nodes have different addresses. */
const pathOf = (url: string | null = "") => url?.slice(url.indexOf("/files/"));

describe("an upload of a picture", () => {
  const announced = (name: string, size: number) =>
    alice.call("createUpload", { purpose: "picture", name, size });

  test("takes the place of a conversation", async () => {
    const both = { chat_id: chat.id, purpose: "picture", name: "a.png", size: 1 } as const;
    for (const input of [both, { name: "a.png", size: 1 }]) {
      expect(await failure(alice.call("createUpload", input))).toMatchObject({
        code: "bad_request",
      });
    }
  });

  test("is stored small and as a still", async () => {
    const file = await uploadPicture(alice, await pngOf(2000, 1000));
    expect(file).toMatchObject({ status: "ready", type: "image/webp", width: 512, height: 256 });
    const { url, preview_url } = await linkOf(alice, file.id);
    const sizeOf = async (address: string | null) =>
      new Bun.Image(await (await fetch(address ?? "")).arrayBuffer()).metadata();
    expect(await sizeOf(url)).toMatchObject({ width: 512, height: 256, format: "webp" });
    expect(await sizeOf(preview_url)).toMatchObject({ width: 384, height: 192 });
  });

  test("refuses everything else", async () => {
    for (const bytes of ["hello", "<svg xmlns='http://www.w3.org/2000/svg'></svg>"]) {
      const { upload_url } = await announced("a.png", bytes.length);
      expect(await put(upload_url, bytes)).toMatchObject({
        status: 415,
        body: { code: "unsupported_media_type" },
      });
    }
  });

  test("cannot be part of a message, and no file of a conversation can be a picture", async () => {
    const { id } = await uploadPicture(alice);
    const send = alice.call("sendMessage", { chat_id: chat.id, content: "", file_ids: [id] });
    expect(await failure(send)).toMatchObject({ code: "not_found" });
    const file = await upload(alice, chat.id, "a.png", await pngOf());
    const set = alice.call("setAvatar", { file_id: file.id });
    expect(await failure(set)).toMatchObject({ code: "conflict" });
    const setGroup = alice.call("setChatPicture", { chat_id: chat.id, file_id: file.id });
    expect(await failure(setGroup)).toMatchObject({ code: "conflict" });
  });

  test("is shown to its owner only, until it is used", async () => {
    const { id } = await uploadPicture(alice);
    const foreign = bob.call("getFileLinks", { file_ids: [id] });
    expect(await failure(foreign)).toMatchObject({ code: "forbidden" });
  });
});

describe("the picture of a person", () => {
  test("is found by everybody, and announced to those who share a conversation", async () => {
    await using socket = await bob.connect();
    const { id } = await uploadPicture(alice);
    const before = await alice.call("getMe", {});
    const { presence, ...account } = await alice.call("setAvatar", { file_id: id });
    expect(account.version).toBeGreaterThan(before.version);
    expect(presence).toBe("visible");
    expect({ ...before, version: account.version }).toEqual({ ...account, presence });
    const event = await socket.event(
      "events.accountUpdated",
      ({ username }) => username === alice.username,
    );
    expect(event.params).toEqual(account);
    const profile = await profileOf(stranger, alice);
    expect(profile).toEqual({
      account,
      picture_url: expect.any(String),
      preview_url: expect.any(String),
      expires_at: expect.any(String),
    });
    const again = await profileOf(bob, alice);
    // A new window may have begun.
    if (again?.expires_at === profile?.expires_at) {
      expect(pathOf(again?.picture_url)).toBe(pathOf(profile?.picture_url));
    }
    const response = await fetch(profile?.picture_url ?? "");
    expect(response.headers.get("content-type")).toBe("image/webp");
    expect((await fetch(profile?.preview_url ?? "")).status).toBe(200);
  });

  test("takes the place of the former one, which is gone", async () => {
    await alice.call("setAvatar", { file_id: (await uploadPicture(alice)).id });
    const former = await profileOf(bob, alice);
    const { id } = await uploadPicture(alice);
    const first = await alice.call("setAvatar", { file_id: id });
    expect(await alice.call("setAvatar", { file_id: id })).toEqual(first);
    expect((await fetch(former?.picture_url ?? "")).status).toBe(404);
    await alice.call("setAvatar", { file_id: null });
    expect(await profileOf(bob, alice)).toMatchObject({
      picture_url: null,
      preview_url: null,
      expires_at: null,
    });
  });

  test("reaches clients that were away", async () => {
    const updates = (since: { accounts_since?: number } = {}) =>
      bob.call("getUpdates", { known: {}, ...since }) as Promise<Overview>;
    const { accounts_seq } = await updates();
    const { version } = await alice.call("setAvatar", {
      file_id: (await uploadPicture(alice)).id,
    });
    const { accounts } = await updates({ accounts_since: accounts_seq });
    expect(accounts).toMatchObject([{ username: alice.username, version }]);
  });

  test("must be an own upload that is ready and unused", async () => {
    const set = (file_id: string) => failure(alice.call("setAvatar", { file_id }));
    expect(await set(Bun.randomUUIDv7())).toMatchObject({ code: "not_found" });
    expect(await set((await uploadPicture(bob)).id)).toMatchObject({ code: "not_found" });
    const waiting = await alice.call("createUpload", {
      purpose: "picture",
      name: "a.png",
      size: 5,
    });
    expect(await set(waiting.file.id)).toMatchObject({ code: "conflict" });
    const { id } = await uploadPicture(alice);
    await alice.call("setChatPicture", { chat_id: chat.id, file_id: id });
    expect(await set(id)).toMatchObject({ code: "conflict" });
  });

  test("cannot be cancelled while it is used", async () => {
    const { id } = await uploadPicture(alice);
    await alice.call("setAvatar", { file_id: id });
    expect(await failure(alice.call("cancelUpload", { file_id: id }))).toMatchObject({
      code: "conflict",
    });
  });

  test("is deleted with the account", async () => {
    const [leaving] = await people(server.url, "leaving");
    await leaving.call("setAvatar", { file_id: (await uploadPicture(leaving)).id });
    const profile = await profileOf(bob, leaving);
    await leaving.call("deleteMe", { password: "correct horse battery" });
    expect((await fetch(profile?.picture_url ?? "")).status).toBe(404);
    expect(await profileOf(bob, leaving)).toMatchObject({
      account: { deleted: true },
      picture_url: null,
    });
  });

  test("is part of the archive of one's own data", async () => {
    const { id, name } = await uploadPicture(alice);
    await alice.call("setAvatar", { file_id: id });
    const archive = await fetch((await alice.call("exportMe")).url);
    const files = unzip(await archive.bytes());
    expect(linesOf(files, "account.jsonl")).toMatchObject([{ picture_id: id }]);
    expect([...files.keys()]).toContain(`files/${id}-${name}`);
  });

  test("is left out for names that nobody has", async () => {
    const usernames = [alice.username, alice.username, "nobody_at_all"];
    const { items } = await bob.call("getProfiles", { usernames });
    expect(items.map(({ account }) => account.username)).toEqual([alice.username]);
  });
});

describe("the picture of a group", () => {
  test("is set by its participants, and a counted change that all of them receive", async () => {
    await using socket = await alice.connect();
    const { id } = await uploadPicture(bob);
    const changed = await bob.call("setChatPicture", { chat_id: chat.id, file_id: id });
    expect(changed.picture_id).toBe(id);
    const event = await socket.event("events.conversationUpdated");
    expect(event.at).toEqual({ conversation_id: chat.id, seq: changed.seq });
    expect(event.params).toMatchObject({
      picture_id: id,
      changes: [{ kind: "picture_changed", actor: bob.account, subjects: [], title: null }],
    });
    const { url } = await linkOf(alice, id);
    expect((await fetch(url)).status).toBe(200);
    const foreign = stranger.call("getFileLinks", { file_ids: [id] });
    expect(await failure(foreign)).toMatchObject({ code: "forbidden" });
    const again = await bob.call("setChatPicture", { chat_id: chat.id, file_id: id });
    expect(again.seq).toBe(changed.seq);
    const removed = await alice.call("setChatPicture", { chat_id: chat.id, file_id: null });
    expect(removed).toMatchObject({ picture_id: null, seq: changed.seq + 1 });
    expect((await fetch(url)).status).toBe(404);
  });

  test("is for groups only, and for those who take part", async () => {
    const direct = await alice.call("startChat", { usernames: [stranger.username] });
    const { id } = await uploadPicture(alice);
    const onDirect = alice.call("setChatPicture", { chat_id: direct.id, file_id: id });
    expect(await failure(onDirect)).toMatchObject({ code: "bad_request" });
    const file = await uploadPicture(stranger);
    const foreign = stranger.call("setChatPicture", { chat_id: chat.id, file_id: file.id });
    expect(await failure(foreign)).toMatchObject({ code: "forbidden" });
  });

  test("stays when the person who chose it deletes their account, unless nobody is left", async () => {
    const [leaving] = await people(server.url, "leaving");
    const set = async (group: { id: string }) => {
      const { id } = await uploadPicture(leaving);
      await leaving.call("setChatPicture", { chat_id: group.id, file_id: id });
      return (await linkOf(leaving, id)).url;
    };
    const [shared, lonely] = [await groupOf(leaving, bob), await groupOf(leaving)];
    const [kept, dropped] = [await set(shared), await set(lonely)];
    await leaving.call("deleteMe", { password: "correct horse battery" });
    await until(async () => (await fetch(dropped)).status === 404, "the picture is deleted");
    expect((await fetch(kept)).status).toBe(200);
    expect((await bob.call("getChat", { chat_id: shared.id })).picture_id).not.toBeNull();
  });

  test("cannot be sent in a message", async () => {
    const { id } = await uploadPicture(alice);
    await alice.call("setChatPicture", { chat_id: chat.id, file_id: id });
    const send = alice.call("sendMessage", { chat_id: chat.id, content: "", file_ids: [id] });
    expect(await failure(send)).toMatchObject({ code: "conflict" });
    expect((await announce(alice, chat.id, "a.txt", 1)).file.status).toBe("waiting");
  });
});

test("image_pixels_per_hour limits the pixels of a person's pictures, whatever their bytes", async () => {
  await using limited = await startServer(limits({ image_pixels_per_hour: 4_000_000 }));
  const [carol, dave] = await people(limited.url, "carol", "dave");
  const picture = await pngOf(1500, 1500);
  const send = async (person: Person) => {
    const name = { purpose: "picture", name: "a.png", size: picture.length } as const;
    const { upload_url } = await person.call("createUpload", name);
    return put(new URL(upload_url, limited.url).href, picture);
  };
  expect(await send(carol)).toMatchObject({ status: 200 });
  expect(await send(carol)).toMatchObject({
    status: 429,
    body: { code: "rate_limited", parameters: { retry_after: expect.any(Number) } },
  });
  expect(await send(dave)).toMatchObject({ status: 200 });
});
