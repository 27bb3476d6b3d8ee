import { afterAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  answer,
  failure,
  groupOf,
  type Person,
  people,
  say,
  signUp,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { upload } from "@parley/testkit/files.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { limits, noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import { linesOf, unzip } from "@parley/testkit/zip.ts";

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OPERATORS: "oona",
});
afterAll(() => server[Symbol.asyncDispose]());
const { url } = server;
const backend = new Backend(url);
const operator = await operatorAt(server, "oona");

/** Number of files in an archive. */
const FILES = 13;

const linkOf = async (person: Pick<Person, "call">) => (await person.call("exportMe")).url;

async function download(link: string) {
  const response = await fetch(link);
  expect(response.status).toBe(200);
  return { headers: response.headers, files: unzip(await response.bytes()) };
}

/** Begins a download, and does not read on. */
async function beginDownload(link: string) {
  const { hostname, port, host, pathname } = new URL(link);
  const socket = connect(Number(port), hostname);
  socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  const [head] = await once(socket, "data");
  socket.pause();
  return { status: Number(String(head).split(" ")[1]), giveUp: () => socket.destroy() };
}

/** The failure of a download. */
async function refusal(link: string) {
  const { status, body } = await answer(await fetch(link));
  return [status, !body.ok && body.code];
}

describe.each(transports)("over %s", (transport) => {
  test("exportMe links to an archive of everything that the person can see", async () => {
    const [alice, bob, stranger] = await people(url, "alice", "bob", "stranger");
    const chat = await groupOf(alice, bob);
    const others = await groupOf(bob);
    await say(bob, others, "not for Alice");
    const kept = await say(alice, chat, "Grüße 🎉\nto everybody");
    const file = await upload(alice, chat.id, "Grüße.txt", "hello from Ä");
    const foreign = await upload(bob, chat.id, "b.txt", "not Alice's");
    const sent = await alice.call("sendMessage", {
      chat_id: chat.id,
      content: "",
      file_ids: [file.id],
    });
    const answered = await say(bob, chat, "thanks");
    const hidden = await say(bob, chat, "hidden by Alice");
    const deleted = await say(bob, chat, "deleted by Bob");
    await alice.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [hidden.id] });
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [deleted.id] });
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await alice.call("blockUser", { username: stranger.username });
    await using caller = await alice.via(transport);
    const { url: link, expires_at } = await caller.call("exportMe");
    expect(expires_at).toMatch(TIMESTAMP);
    expect(Date.parse(expires_at) - Date.now()).toBeLessThan(11 * 60_000);

    const { headers, files } = await download(link);
    expect(headers.get("content-type")).toBe("application/zip");
    const name = new RegExp(`^attachment; filename="parley-${alice.username}-[\\d-]+\\.zip"$`);
    expect(headers.get("content-disposition")).toMatch(name);
    expect(headers.get("cache-control")).toBe("no-store");
    expect([...files.keys()]).toEqual([
      "README.txt",
      "account.jsonl",
      "sessions.jsonl",
      "agents.jsonl",
      "tool-servers.jsonl",
      "usage.jsonl",
      "blocked.jsonl",
      "incoming-hooks.jsonl",
      "webhooks.jsonl",
      "reports.jsonl",
      "conversations.jsonl",
      "messages.jsonl",
      "reactions.jsonl",
      `files/${file.id}-Grüße.txt`,
    ]);
    expect(files.get(`files/${file.id}-Grüße.txt`)).toBe("hello from Ä");
    expect([...files.keys()].join()).not.toContain(foreign.id);
    expect(linesOf(files, "account.jsonl")).toMatchObject([
      {
        username: alice.username,
        created_at: expect.stringMatching(TIMESTAMP),
        added_by: "everyone",
        presence: "visible",
        last_seen_at: null,
      },
    ]);
    expect(linesOf(files, "sessions.jsonl")).toHaveLength(1);
    expect(linesOf(files, "agents.jsonl")).toMatchObject([
      { provider: "claude", key_configured: true },
      { provider: "gpt", key_configured: false },
    ]);
    expect(linesOf(files, "blocked.jsonl")).toEqual([{ username: stranger.username }]);
    expect(linesOf(files, "conversations.jsonl")).toMatchObject([{ id: chat.id }]);
    expect(linesOf(files, "messages.jsonl")).toEqual([kept, sent, answered]);
    const text = [...files.values()].join();
    expect(text).not.toContain("sandbox-0123456789");
    expect(text).not.toContain("6789");
  });
});

test("an archive has the person's reactions, reports and hooks, without secrets", async () => {
  const [olga, bob] = await people(url, "olga", "bob");
  const chat = await groupOf(olga, bob);
  const chat_id = chat.id;
  const [first, second] = [await say(bob, chat, "first"), await say(bob, chat, "second")];
  for (const [message, emoji] of [
    [first, "👍"],
    [second, "🎉"],
    [first, "🎉"],
  ] as const) {
    await olga.call("addReaction", { message_id: message.id, emoji });
  }
  await bob.call("addReaction", { message_id: first.id, emoji: "👍" });
  await bob.call("deleteMessages", { chat_id, message_ids: [second.id] });
  await olga.call("updateMe", { added_by: "known" });
  await olga.call("reportMessage", { message_id: first.id, reason: "rude" });
  const hook = await olga.call("createIncomingHook", { chat_id, name: "alerts" });
  const { files } = await download(await linkOf(olga));
  expect(linesOf(files, "account.jsonl")).toMatchObject([{ added_by: "known" }]);
  const created_at = expect.stringMatching(TIMESTAMP);
  const at = { conversation_id: chat_id, message_id: first.id };
  expect(linesOf(files, "reactions.jsonl")).toEqual([
    { ...at, emoji: "👍", created_at },
    { ...at, emoji: "🎉", created_at },
  ]);
  expect(linesOf(files, "reports.jsonl")).toEqual([
    { id: expect.any(String), at: created_at, ...at, reason: "rude", resolved_at: null },
  ]);
  expect(linesOf(files, "incoming-hooks.jsonl")).toEqual([
    { id: hook.id, name: "alerts", chat_id, account: `${olga.username}:alerts`, created_at },
  ]);
  const secret = hook.url.slice(hook.url.lastIndexOf("/") + 1);
  expect([...files.values()].join()).not.toContain(secret);
  const ofBob = (await download(await linkOf(bob))).files;
  for (const name of ["reports", "incoming-hooks", "webhooks"]) {
    expect(linesOf(ofBob, `${name}.jsonl`)).toEqual([]);
  }
});

test("an archive has what the person wrote in groups that they have left", async () => {
  const [alice, bob] = await people(url, "alice", "bob");
  const chat = await groupOf(bob, alice);
  const first = await say(alice, chat, "first");
  await say(bob, chat, "by somebody else");
  const [deleted, hidden] = [await say(alice, chat, "deleted"), await say(alice, chat, "hidden")];
  const last = await say(alice, chat, "last");
  await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [deleted.id] });
  await alice.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [hidden.id] });
  await alice.call("leaveChat", { chat_id: chat.id });
  await say(bob, chat, "after Alice left");
  await bob.call("addReaction", { message_id: first.id, emoji: "👍" });
  const { files } = await download(await linkOf(alice));
  expect(linesOf(files, "conversations.jsonl")).toEqual([]);
  expect(linesOf(files, "messages.jsonl")).toMatchObject([
    { id: first.id, content: "first", reactions: [] },
    { id: last.id, content: "last", reactions: [] },
  ]);
  await bob.call("addChatMembers", { chat_id: chat.id, usernames: [alice.username] });
  const again = (await download(await linkOf(alice))).files;
  expect(linesOf(again, "messages.jsonl")).toHaveLength(4);
});

test("an archive has the webhooks that an operator created, without secrets", async () => {
  const chat = await groupOf(operator);
  const wanted = { url: "https://1.1.1.1/hook", events: ["events.messageNew"], chat_id: chat.id };
  const { id, secret } = await operator.call("createWebhook", wanted);
  const other = await backend.call("createWebhook", wanted);
  const { files } = await download(await linkOf(operator));
  expect(linesOf(files, "webhooks.jsonl")).toEqual([
    { id, ...wanted, disabled: null, created_at: expect.stringMatching(TIMESTAMP) },
  ]);
  expect([...files.values()].join()).not.toContain(secret);
  for (const webhook_id of [id, other.id]) await backend.call("deleteWebhook", { webhook_id });
});

test("a link that was altered leads nowhere", async () => {
  const [alice, bob] = await people(url, "alice", "bob");
  const link = await linkOf(alice);
  const token = link.slice(link.lastIndexOf("/") + 1);
  const [username, expires, session, nonce, signature] = token.split(".");
  const altered = [
    [bob.username, expires, session, nonce, signature],
    [username, Number(expires) + 1, session, nonce, signature],
    [username, expires, "", nonce, signature],
    [username, expires, session, `${nonce}x`, signature],
    [username, expires, session, nonce, `${signature?.slice(0, -1)}`],
    [username, expires, session, nonce],
    ["nobody_at_all", expires, session, nonce, signature],
    [""],
  ];
  for (const parts of altered) {
    const wrong = link.replace(token, parts.join("."));
    expect((await fetch(wrong)).status).toBe(404);
  }
  expect((await fetch(link, { method: "POST" })).status).toBe(405);
  expect((await download(link)).files.size).toBe(FILES);
});

test("a link ends with the account", async () => {
  const [alice, bob] = await people(url, "alice", "bob");
  const [ofAlice, ofBob] = [await linkOf(alice), await linkOf(bob)];
  await backend.call("suspendAccount", { username: alice.username });
  expect(await refusal(ofAlice)).toEqual([403, "suspended"]);
  await backend.call("restoreAccount", { username: alice.username });
  expect(await refusal(ofAlice)).toEqual([404, "not_found"]);
  await backend.call("eraseAccount", { username: bob.username });
  expect(await refusal(ofBob)).toEqual([404, "not_found"]);
});

test("a link ends with the session that asked for it", async () => {
  const alice = await signUp(url, "alice");
  const [ofSession, ofBackend] = [await linkOf(alice), await linkOf(backend.as(alice.username))];
  await alice.call("signOut");
  expect(await refusal(ofSession)).toEqual([404, "not_found"]);
  expect((await download(ofBackend)).files.size).toBe(FILES);
});

test("one download of a person runs at a time, and one that is given up makes room", async () => {
  const alice = await signUp(url, "alice");
  const chat = await groupOf(alice);
  // More than the buffers between the server and a client that does not read, also compressed.
  const filler = () => Buffer.from(crypto.getRandomValues(new Uint8Array(20_000))).toBase64();
  for (let sent = 0; sent < 400; sent++) await say(alice, chat, filler());
  const [first, second] = [await linkOf(alice), await linkOf(alice)];
  const { status, giveUp } = await beginDownload(first);
  expect(status).toBe(200);
  expect(await refusal(second)).toEqual([409, "conflict"]);
  giveUp();
  let next = await fetch(second);
  const isAccepted = async () => {
    if (next.status === 409) next = await fetch(second);
    return next.status !== 409;
  };
  await until(isAccepted, "there is room for a download");
  const files = unzip(await next.bytes());
  expect(linesOf(files, "messages.jsonl")).toHaveLength(400);
});

test("a service key can get the link for a person", async () => {
  const alice = await signUp(url, "alice");
  const { files } = await download(await linkOf(backend.as(alice.username)));
  expect(linesOf(files, "account.jsonl")).toMatchObject([{ username: alice.username }]);
});

test("the links that a person gets are limited", async () => {
  await using limited = await startServer(limits({ exports_per_hour: 2 }));
  const alice = await signUp(limited.url, "alice");
  // One socket: the nodes tell each other a little later how many links they made.
  await using socket = await alice.connect();
  await linkOf(socket);
  await linkOf(socket);
  expect(await failure(socket.call("exportMe"))).toMatchObject({ code: "rate_limited" });
});

test("who gives up a download is no failure of the server", async () => {
  const ada = await signUp(url, "ada");
  const chat = await groupOf(ada);
  for (let n = 0; n < 60; n++) await say(ada, chat, "x".repeat(30_000));
  for (let n = 0; n < 20; n++) {
    const link = await linkOf(ada);
    const controller = new AbortController();
    const response = await fetch(link, { signal: controller.signal });
    await response.body?.getReader().read();
    controller.abort();
  }
  const last = await linkOf(ada);
  await until(async () => (await fetch(last)).status === 200, "the end of the others");
  expect(server.output()).not.toContain("account export failed");
});
