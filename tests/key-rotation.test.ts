import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addSecondFactor } from "@parley/testkit/authenticator.ts";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { agentOf, answerTo, Person, post, Socket, say, signUp } from "@parley/testkit/client.ts";
import { startReceiver } from "@parley/testkit/receiver.ts";
import { runMain, startServer } from "@parley/testkit/server.ts";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import { Webhook } from "standardwebhooks";

const PASSWORD = "correct horse battery";
const masterKey = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64");

test("after a rotation everything that was sealed opens without the old master key", async () => {
  const data = mkdtempSync(join(tmpdir(), "parley-rotation-"));
  const [oldKey, newKey] = [masterKey(), masterKey()];
  const settings = (keys: string) => ({
    ...serviceKeySetting(),
    PARLEY_DATA: data,
    PARLEY_PRIVATE_ADDRESSES: "allow",
    PARLEY_MASTER_KEY: keys,
  });
  await using receiver = startReceiver();
  const before = await startServer(settings(oldKey));
  const { username, token, account } = await signUp(before.url);
  const person = new Person(before.url, token, account);
  await person.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  const chat = await person.call("startChat", { usernames: [agentOf(person)] });
  const hook = { url: receiver.url, events: ["events.messageNew"], chat_id: chat.id } as const;
  const { secret } = await new Backend(before.url).call("createWebhook", {
    ...hook,
    events: [...hook.events],
  });
  await using tools = new ToolServer();
  tools.token = "token-of-the-tools";
  const added = { name: "tools", url: tools.url, token: "token-of-the-tools" };
  const { id: server_id } = await person.call("addToolServer", added);
  const { app } = await addSecondFactor(person, PASSWORD);
  await before.stop();

  const rotate = async () => {
    const { stdout } = await runMain(["keys", "rotate", "--json"], settings(`${newKey},${oldKey}`));
    return JSON.parse(stdout);
  };
  expect(await rotate()).toEqual({ resealed: 4, kept: 0 });
  expect(await rotate()).toEqual({ resealed: 0, kept: 4 });

  const after = await startServer(settings(newKey));
  const signIn = { username, password: PASSWORD, code: app.next() };
  expect((await post(after.url, "signIn", signIn)).status).toBe(200);
  await using socket = await Socket.open(after.url, token);
  const asked = await say(new Person(after.url, token, account), chat, "hello");
  expect((await answerTo(socket, asked)).turn).toMatchObject({ status: "complete" });
  const refreshed = new Person(after.url, token, account).call("refreshToolServer", { server_id });
  expect(await refreshed).toMatchObject({ status: "ready" });
  await receiver.has(1);
  const [{ body, headers } = { body: "", headers: {} }] = receiver.received;
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: "events.messageNew" });
  await after[Symbol.asyncDispose]();
  rmSync(data, { recursive: true, force: true });
});
