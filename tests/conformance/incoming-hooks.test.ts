import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  type Person,
  people,
  say,
} from "@parley/testkit/client.ts";
import { installed } from "@parley/testkit/packages.ts";
import { freePort } from "@parley/testkit/postgres.ts";
import { limits, startServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { until } from "@parley/testkit/until.ts";
import { IncomingWebhook } from "@slack/webhook";

const server = await sharedServer();
const [alice, bob] = await people(server.url, "alice", "bob");

const createHook = (chat: { id: string }, name = "alerts", by: Person = alice) =>
  by.call("createIncomingHook", { chat_id: chat.id, name });

async function postTo(url: string, body: string | URLSearchParams) {
  const response = await fetch(url, { method: "POST", body });
  return { status: response.status, text: await response.text() };
}

const historyOf = async (chat: { id: string }) =>
  (await bob.call("getChatHistory", { chat_id: chat.id })).items;

describe("an incoming hook", () => {
  test("posts what @slack/webhook sends, as <creator>:<name>, to everybody at once", async () => {
    const chat = await groupOf(alice, bob);
    await using socket = await bob.connect();
    const { url } = await createHook(chat);
    const { text } = await new IncomingWebhook(url).send({
      text: "short",
      blocks: [
        { type: "section", text: { type: "mrkdwn", text: "*Deployed* <https://x.org|v2>" } },
      ],
    });
    expect(text).toBe("ok");
    const { params } = await socket.event("events.messageNew", () => true);
    expect(params).toMatchObject({
      content: "**Deployed** [v2](https://x.org/)",
      sender: { username: `${alice.username}:alerts`, kind: "agent", display_name: "alerts" },
      mentions: [],
    });
    expect(await historyOf(chat)).toMatchObject([{ id: params.id }]);
    expect((await bob.call("getChat", { chat_id: chat.id })).participants).toHaveLength(2);
  });

  test("accepts JSON of any type, and a form", async () => {
    const chat = await groupOf(alice, bob);
    const { url } = await createHook(chat);
    const payload = JSON.stringify({ text: "hello @everybody" });
    expect(await postTo(url, payload)).toEqual({ status: 200, text: "ok" });
    expect(await postTo(url, new URLSearchParams({ payload }))).toEqual({
      status: 200,
      text: "ok",
    });
    expect(await historyOf(chat)).toHaveLength(2);
  });

  test("starts no agent", async () => {
    const chat = await groupOf(alice, bob);
    const agent_username = agentOf(alice);
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username, always_on: true });
    const { url } = await createHook(chat);
    await postTo(url, JSON.stringify({ text: `@${agent_username} hello` }));
    const [posted] = await historyOf(chat);
    expect(posted?.mentions).toEqual([]);
    await using socket = await alice.connect();
    await answerTo(socket, await say(alice, chat, "hello"));
    const triggers = (await historyOf(chat)).flatMap(({ turn }) => turn?.triggered_by ?? []);
    expect(triggers).toHaveLength(1);
    expect(triggers).not.toContain(posted?.id);
  });

  test("is no agent: it cannot be asked, invited or listed", async () => {
    const chat = await groupOf(alice, bob);
    await createHook(chat);
    const account = `${alice.username}:alerts`;
    const { items } = await alice.call("getMyAgents");
    expect(items.map(({ username }) => username)).not.toContain(account);
    const calls = [
      alice.call("startChat", { usernames: [account] }),
      alice.call("addChatMembers", { chat_id: chat.id, usernames: [account] }),
      alice.call("addGroupAgent", { chat_id: chat.id, agent_username: account }),
    ];
    const statuses = await Promise.all(calls.map(async (call) => (await failure(call)).status));
    expect(statuses).toEqual([403, 403, 400]);
  });

  test("is 404 with another secret, once it is deleted, and once its creator has left", async () => {
    const chat = await groupOf(alice, bob);
    const { id, url } = await createHook(chat);
    const other = await createHook(chat, "ci");
    const payload = JSON.stringify({ text: "hello" });
    const status = async (to: string) => (await postTo(to, payload)).status;
    expect(await status(`${url}x`)).toBe(404);
    expect(await status(url.replace(id, other.id))).toBe(404);
    expect(await status(url)).toBe(200);
    const { items } = await alice.call("getIncomingHooks", { chat_id: chat.id });
    expect(items.map(({ name, account }) => [name, account])).toEqual([
      ["alerts", `${alice.username}:alerts`],
      ["ci", `${alice.username}:ci`],
    ]);
    expect(JSON.stringify(items)).not.toContain(url.split("/").at(-1) as string);
    await alice.call("deleteIncomingHook", { hook_id: id });
    expect(await status(url)).toBe(404);
    expect(await status(other.url)).toBe(200);
    await alice.call("leaveChat", { chat_id: chat.id });
    expect(await status(other.url)).toBe(404);
    await bob.call("deleteIncomingHook", { hook_id: other.id });
    const gone = bob.call("deleteIncomingHook", { hook_id: other.id });
    expect(await failure(gone)).toMatchObject({ status: 404 });
  });

  test("answers a bad payload with 400, a large one with 413 and other methods with 405", async () => {
    const chat = await groupOf(alice, bob);
    const { url } = await createHook(chat);
    for (const body of ["", "{", "{}", '{"text":""}', "[]", "payload=x"]) {
      expect((await postTo(url, body)).status).toBe(400);
    }
    expect((await postTo(url, JSON.stringify({ text: "x".repeat(300_000) }))).status).toBe(413);
    expect((await fetch(url)).status).toBe(405);
    expect(await historyOf(chat)).toEqual([]);
  });

  test("has a rate of its own", async () => {
    const chat = await groupOf(alice, bob);
    const [first, second] = [await createHook(chat), await createHook(chat, "ci")];
    const payload = JSON.stringify({ text: "hello" });
    let answer = await postTo(first.url, payload);
    for (let times = 0; times < 200 && answer.status === 200; times++) {
      answer = await postTo(first.url, payload);
    }
    expect(answer.status).toBe(429);
    expect((await postTo(second.url, payload)).status).toBe(200);
  });
});

describe("incoming hooks are created", () => {
  test("by the admin of a group, and by nobody in a direct conversation", async () => {
    const chat = await groupOf(alice, bob);
    expect(await failure(createHook(chat, "mine", bob))).toMatchObject({ status: 403 });
    const direct = await alice.call("startChat", { usernames: [bob.username] });
    expect(await failure(createHook(direct))).toMatchObject({ status: 400 });
  });

  test("with a name that no agent has", async () => {
    const chat = await groupOf(alice, bob);
    expect(await failure(createHook(chat, "claude"))).toMatchObject({ status: 409 });
    for (const name of ["", "two words", "1st", "a:b", "x".repeat(33)]) {
      expect(await failure(createHook(chat, name))).toMatchObject({
        status: 400,
        parameters: {
          fields: {
            name: "must begin with a letter and have 1 to 32 letters (a to z), digits, dashes or underscores",
          },
        },
      });
    }
  });

  test("with a name that is not reserved", async () => {
    const chat = await groupOf(alice, bob);
    for (const name of ["admin", "System", "support", "support-team", "ad_min"]) {
      const refused = await failure(createHook(chat, name));
      expect(refused).toMatchObject({
        status: 400,
        parameters: { fields: { name: "is reserved" } },
      });
    }
  });
});

test("Alertmanager posts its alerts", async () => {
  const alertmanager = installed("prometheus-alertmanager", "prometheus-alertmanager");
  const folder = mkdtempSync(join(tmpdir(), "parley-alertmanager-"));
  const chat = await groupOf(alice, bob);
  const { url } = await createHook(chat, "alertmanager");
  const receiver = { name: "chat", slack_configs: [{ api_url: url, channel: "#ops" }] };
  const route = { receiver: "chat", group_wait: "100ms" };
  // JSON is YAML.
  writeFileSync(join(folder, "config.yml"), JSON.stringify({ route, receivers: [receiver] }));
  const address = `127.0.0.1:${await freePort()}`;
  const process = Bun.spawn(
    [
      alertmanager,
      `--config.file=${join(folder, "config.yml")}`,
      `--storage.path=${join(folder, "data")}`,
      `--web.listen-address=${address}`,
      "--cluster.listen-address=",
    ],
    { stdout: "ignore", stderr: "ignore" },
  );
  try {
    const alerts = [{ labels: { alertname: "DiskFull", host: "db1" } }];
    const raise = () =>
      fetch(`http://${address}/api/v2/alerts`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(alerts),
      }).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await raise())) {
      if (process.exitCode !== null) throw new Error("Alertmanager did not start");
      await Bun.sleep(50);
    }
    let shown = "";
    const look = async () => {
      while (shown === "") {
        shown = (await historyOf(chat)).map(({ content }) => content).join("\n");
        await Bun.sleep(50);
      }
    };
    void look();
    await until(() => shown !== "", "the alert");
    expect(shown).toContain("DiskFull");
  } finally {
    process.kill();
    await process.exited;
    rmSync(folder, { recursive: true });
  }
});

test("the hooks that a person creates are limited", async () => {
  await using limited = await startServer(limits({ hooks_per_hour: 2 }));
  const [carol] = await people(limited.url, "carol");
  const { id: chat_id } = await groupOf(carol);
  // One socket: the nodes tell each other a little later how many hooks they created.
  await using socket = await carol.connect();
  const create = () => socket.call("createIncomingHook", { chat_id, name: "alerts" });
  await create();
  await create();
  expect(await failure(create())).toMatchObject({ code: "rate_limited" });
});
