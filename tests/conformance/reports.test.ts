import { afterAll, describe, expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  failure,
  groupOf,
  pagesOf,
  people,
  say,
  TIMESTAMP,
  transports,
  UUID_V7,
} from "@parley/testkit/client.ts";
import { upload } from "@parley/testkit/files.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { limits, noRates, startServer } from "@parley/testkit/server.ts";

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OPERATORS: "olga",
});
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);
const olga = await operatorAt(server, "olga");

/** The reports of a message, newest first. */
async function reportsOf({ id }: { id: string }) {
  const pages = await pagesOf((place) => olga.call("getReports", { ...place }));
  return pages.flat().filter(({ message }) => message.id === id);
}

test("a report names the files of the message, also after the message is deleted", async () => {
  const [alice, bob] = await people(server.url, "alice", "bob");
  const chat = await groupOf(alice, bob);
  const { id } = await upload(bob, chat.id, "rude.txt", "rude");
  const sent = { chat_id: chat.id, content: "", file_ids: [id] };
  const message = await bob.call("sendMessage", sent);
  const reason = "Look at the name.";
  await alice.call("reportMessage", { message_id: message.id, reason });
  await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [message.id] });
  const [report] = await reportsOf(message);
  expect(report?.message).toEqual(message);
  expect(report?.message.files).toMatchObject([{ id, name: "rude.txt", type: "text/plain" }]);
});

describe.each(transports)("over %s", (transport) => {
  test("a report has the message and the five around it, and nothing else", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await using reporter = await alice.via(transport);
    await using operator = await olga.via(transport);
    const chat = await groupOf(alice, bob);
    for (const n of [1, 2, 3, 4]) await say(bob, chat, `before ${n}`);
    const message = await say(bob, chat, "rude");
    for (const n of [1, 2, 3]) await say(alice, chat, `after ${n}`);
    const reason = "This is rude.";
    expect(await reporter.call("reportMessage", { message_id: message.id, reason })).toBe(
      undefined,
    );
    const { items } = await operator.call("getReports", { resolved: false, limit: 1 });
    expect(items).toEqual([
      {
        id: expect.stringMatching(UUID_V7),
        at: expect.stringMatching(TIMESTAMP),
        reporter: alice.account,
        reason,
        message,
        around: expect.any(Array),
        conversation_id: chat.id,
        resolved_at: null,
        resolved_by: null,
        note: null,
      },
    ]);
    const texts = items[0]?.around.map(({ content }) => content);
    expect(texts).toEqual(["before 2", "before 3", "before 4", "after 1", "after 2"]);
  });

  test("resolveReport says who resolved it and why, once", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await using operator = await olga.via(transport);
    const message = await say(bob, await groupOf(alice, bob), "rude");
    await alice.call("reportMessage", { message_id: message.id, reason: "rude" });
    const [report] = await reportsOf(message);
    const report_id = report?.id ?? "";
    const resolved = await operator.call("resolveReport", { report_id, note: "Warned." });
    expect(resolved).toEqual({
      ...(report as NonNullable<typeof report>),
      resolved_at: expect.stringMatching(TIMESTAMP),
      resolved_by: "olga",
      note: "Warned.",
    });
    expect(await reportsOf(message)).toEqual([resolved]);
    const open = await operator.call("getReports", { resolved: false, limit: 100 });
    expect(open.items.map(({ id }) => id)).not.toContain(report_id);
    const again = operator.call("resolveReport", { report_id });
    expect((await failure(again)).message).toBe("conflict: the report is resolved already");
    const unknown = operator.call("resolveReport", { report_id: Bun.randomUUIDv7() });
    expect((await failure(unknown)).message).toBe("not found: report");
    const { items } = await olga.call("getAuditLog", { account: bob.username });
    expect(items.map(({ action, operator: by, details }) => [action, by, details])).toEqual([
      ["report_resolved", "olga", { report: report_id }],
      ["message_reported", null, { report: report_id, reporter: alice.username }],
      ["sign_up", null, expect.anything()],
    ]);
    expect(JSON.stringify(items)).not.toContain("rude");
  });

  test("a message that one cannot see cannot be reported", async () => {
    const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
    await using stranger = await carol.via(transport);
    await using member = await alice.via(transport);
    const chat = await groupOf(alice, bob);
    const message = await say(bob, chat, "hello");
    const report = (caller: Pick<typeof alice, "call">, message_id = message.id) =>
      failure(caller.call("reportMessage", { message_id, reason: "spam" }));
    expect((await report(stranger)).code).toBe("forbidden");
    expect((await report(member, Bun.randomUUIDv7())).code).toBe("not_found");
    const own = await say(alice, chat, "mine");
    expect((await report(member, own.id)).message).toBe(
      "forbidden: you cannot report your own message",
    );
    await alice.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [message.id] });
    expect((await report(member)).code).toBe("not_found");
    expect(await reportsOf(message)).toEqual([]);
  });
});

test("the creator of an incoming hook cannot report its messages, others can", async () => {
  const [alice, bob] = await people(server.url, "alice", "bob");
  const chat = await groupOf(alice, bob);
  const { url } = await alice.call("createIncomingHook", { chat_id: chat.id, name: "alerts" });
  await fetch(url, { method: "POST", body: JSON.stringify({ text: "rude" }) });
  const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
  const message_id = items[0]?.id ?? "";
  const own = alice.call("reportMessage", { message_id, reason: "rude" });
  expect(await failure(own)).toMatchObject({
    status: 403,
    message: "forbidden: you cannot report your own message",
  });
  await bob.call("reportMessage", { message_id, reason: "rude" });
  expect(await reportsOf({ id: message_id })).toHaveLength(1);
});

test("a person reports a message once", async () => {
  const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
  const message = await say(bob, await groupOf(alice, bob, carol), "rude");
  const report = (reason: string) => ({ message_id: message.id, reason });
  await alice.call("reportMessage", report("first"));
  await alice.call("reportMessage", report("second"));
  await carol.call("reportMessage", report("third"));
  expect((await reportsOf(message)).map(({ reason }) => reason)).toEqual(["third", "first"]);
});

test("a report keeps what was reported, and no other text that is deleted", async () => {
  const [alice, bob] = await people(server.url, "alice", "bob");
  const chat = await groupOf(alice, bob);
  const before = await say(bob, chat, "before");
  const message = await say(bob, chat, "rude");
  await alice.call("reportMessage", { message_id: message.id, reason: "rude" });
  await bob.call("editMessage", { message_id: message.id, content: "polite" });
  await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [before.id, message.id] });
  await say(bob, chat, "after the report");
  expect(await reportsOf(message)).toMatchObject([{ message, around: [] }]);
});

test("a service key lists and resolves reports", async () => {
  const [alice, bob] = await people(server.url, "alice", "bob");
  const message = await say(bob, await groupOf(alice, bob), "rude");
  await alice.call("reportMessage", { message_id: message.id, reason: "rude" });
  const { items } = await backend.call("getReports", { resolved: false, limit: 1 });
  const report_id = items[0]?.id ?? "";
  const resolved = await backend.call("resolveReport", { report_id });
  expect(resolved).toMatchObject({
    message,
    resolved_by: "service:(PARLEY_SERVICE_KEY_FILE)",
    note: null,
  });
});

test("reports are limited in number and length", async () => {
  await using limited = await startServer({ ...limits({ reports_per_hour: 2 }) });
  const [alice, bob] = await people(limited.url, "alice", "bob");
  const message = await say(bob, await groupOf(alice, bob), "rude");
  // One socket: the nodes tell each other a little later how many reports they took.
  await using socket = await alice.connect();
  const report = (reason: string) =>
    socket.call("reportMessage", { message_id: message.id, reason });
  for (const reason of ["", "  \n", "x".repeat(1001)]) {
    expect((await failure(report(reason))).parameters?.fields).toHaveProperty("reason");
  }
  await report("one");
  await report("two");
  expect(await failure(report("three"))).toMatchObject({ code: "rate_limited" });
});
