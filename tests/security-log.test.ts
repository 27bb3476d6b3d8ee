import { afterAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { auditActions } from "@parley/protocol";
import { addSecondFactor } from "@parley/testkit/authenticator.ts";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { groupOf, Person, post, say, signUp } from "@parley/testkit/client.ts";
import { entriesAddedBy } from "@parley/testkit/database.ts";
import { startReceiver } from "@parley/testkit/receiver.ts";
import { limits, runMain, startServer } from "@parley/testkit/server.ts";
import { exportJWK, generateKeyPair, SignJWT } from "jose";

const PASSWORD = "correct horse battery";
const NEW_PASSWORD = "battery staple horse";
const API_KEY = "sandbox-key-that-nobody-may-see";
const AUDIENCE = "parley";

const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
const issuerUrl = (): string => `http://127.0.0.1:${issuer.port}`;
const issuer: Bun.Server<unknown> = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  routes: {
    "/.well-known/openid-configuration": () =>
      Response.json({ issuer: issuerUrl(), jwks_uri: `${issuerUrl()}/keys` }),
    "/keys": async () =>
      Response.json({ keys: [{ ...(await exportJWK(publicKey)), alg: "ES256" }] }),
  },
});
const server = await startServer({
  PARLEY_LOG: "info",
  PARLEY_PRIVATE_ADDRESSES: "allow",
  ...serviceKeySetting(),
  PARLEY_OIDC_ISSUER: issuerUrl(),
  PARLEY_OIDC_AUDIENCE: AUDIENCE,
  ...limits({ signups_per_hour: 20 }),
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await issuer.stop(true);
});

type Line = { event?: string; account?: string | null } & Record<string, unknown>;

/** The complete lines. */
const linesOf = (output: string): Line[] =>
  output
    .split("\n")
    .slice(0, -1)
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));

/** Waits for the first line of an event, and of an account if one is given. */
async function logged(event: string, account?: string | null): Promise<Line> {
  for (;;) {
    const found = linesOf(server.output()).find(
      (line) => line.event === event && (account === undefined || line.account === account),
    );
    if (found) return found;
    await Bun.sleep(10);
  }
}

const seen = new Set<string>();
const expectLogged = async (event: string, account?: string | null, details: object = {}) => {
  seen.add(event);
  expect(await logged(event, account)).toMatchObject({ msg: "security event", ...details });
};

/** Runs a command. Its entries are stored, and it prints none of them. */
async function command(...args: string[]) {
  let told = "";
  const entries = await entriesAddedBy(server, async () => {
    const { stdout, stderr } = await runMain(args, { PARLEY_DATA: server.dataDir });
    expect(linesOf(stderr)).toEqual([]);
    told = stdout.trim();
  });
  for (const { event } of entries) seen.add(String(event));
  return { told, entries };
}

const secrets: string[] = [PASSWORD, NEW_PASSWORD, API_KEY];

test("sign-ups, sign-ins, sign-outs and their failures are logged", async () => {
  const alice = await signUp(server.url, "alice");
  const { username } = alice;
  const address = { address: "127.0.0.1", user_agent: expect.stringContaining("Bun") };
  await expectLogged("sign_up", username, { ...address, session_id: expect.any(String) });
  const signIn = (name: string, password: string) =>
    post(server.url, "signIn", { username: name, password });
  const { body } = await signIn(username, PASSWORD);
  if (!body.ok) throw new Error(body.description);
  const { access_token, device } = body.result as { access_token: string; device: string };
  secrets.push(alice.token, access_token, device);
  await expectLogged("sign_in", username, { ...address, method: "password" });
  await signIn(username, "a wrong password");
  await expectLogged("sign_in_failed", username, address);
  await signIn("typed my password here", "a wrong password");
  await expectLogged("sign_in_failed", null);
  secrets.push("a wrong password", "typed my password here");
  while ((await signIn(username, "a wrong password")).status !== 429);
  await expectLogged("throttled", username, { operation: "signIn", ...address });
  while ((await signIn("typed my password here", "a wrong password")).status !== 429);
  await expectLogged("throttled", null, { operation: "signIn", ...address });
  const again = new Person(server.url, access_token, alice.account);
  const { items } = await alice.call("getSessions");
  const session_id = items.find(({ current }) => !current)?.id as string;
  await alice.call("revokeSession", { session_id });
  await expectLogged("session_ended", username, { session_id, reason: "revoked" });
  await again.call("getMe").catch(() => undefined);
  const bob = await signUp(server.url, "bob");
  secrets.push(bob.token);
  await bob.call("signOut");
  await expectLogged("session_ended", bob.username, { reason: "signed_out" });
});

test("changes and resets of passwords are logged", async () => {
  const carol = await signUp(server.url, "carol");
  const { username } = carol;
  secrets.push(carol.token, "another wrong password");
  const change = (current_password: string) =>
    carol.call("changePassword", { current_password, new_password: NEW_PASSWORD });
  await expect(change("a wrong password")).rejects.toThrow();
  await expectLogged("password_change_failed", username);
  await change(PASSWORD);
  await expectLogged("password_changed", username, { sessions_ended: 0 });
  const confirm = (password: string) => carol.call("confirmPassword", { password });
  await expect(confirm("another wrong password")).rejects.toThrow("the password is wrong");
  await expectLogged("password_confirmation_failed", username);
  await confirm(NEW_PASSWORD);
  await expectLogged("password_confirmed", username);
  const { told, entries } = await command("password", "reset", username);
  expect(entries).toMatchObject([
    { event: "password_reset", account: username, sessions_ended: 1 },
  ]);
  expect(JSON.stringify(entries)).not.toContain(/is now (\S+)/.exec(told)?.[1] as string);
});

test("reset links that are made and refused are logged", async () => {
  const { username, token } = await signUp(server.url, "cora");
  const { told, entries } = await command("users", "reset-link", username);
  const reset = new URL(told).hash.slice(1);
  secrets.push(token, reset);
  expect(entries).toMatchObject([{ event: "password_reset_created", account: username }]);
  expect(JSON.stringify(entries)).not.toContain(reset);
  const wrong = `${reset.slice(0, -4)}zzzz`;
  const refused = await post(server.url, "resetPassword", {
    token: wrong,
    new_password: NEW_PASSWORD,
  });
  expect(refused.status).toBe(404);
  secrets.push(wrong);
  await expectLogged("password_reset_refused", undefined, { address: "127.0.0.1" });
});

test("changes and uses of a second factor are logged", async () => {
  const carla = await signUp(server.url, "carla");
  const { username } = carla;
  const { secret, app, recoveryCodes } = await addSecondFactor(carla, PASSWORD);
  const wrong = "zzzz-zzzz-zzzz-zzzz";
  secrets.push(carla.token, secret, wrong, ...recoveryCodes);
  await expectLogged("second_factor_added", username, { sessions_ended: 0 });
  const signIn = (more: object) =>
    post(server.url, "signIn", { username, password: PASSWORD, ...more });
  await signIn({});
  await expectLogged("second_factor_asked", username, { address: "127.0.0.1" });
  await signIn({ code: wrong });
  await expectLogged("sign_in_failed", username, { reason: "second_factor" });
  await signIn({ code: app.next() });
  await expectLogged("sign_in", username, { method: "password", second_factor: "totp" });
  const change = (code = "", password = PASSWORD) => ({ password, code });
  const wrongly = carla.call("removeSecondFactor", change(wrong));
  await expect(wrongly).rejects.toThrow("the code is wrong");
  await expectLogged("second_factor_failed", username, { reason: "second_factor" });
  const { recovery_codes } = await carla.call("renewRecoveryCodes", change(recoveryCodes[0]));
  secrets.push(...recovery_codes);
  await expectLogged("recovery_codes_renewed", username);
  await carla.call("removeSecondFactor", change(recovery_codes[0]));
  await expectLogged("second_factor_removed", username);
});

test("changes of provider keys and of the master key are logged", async () => {
  const dora = await signUp(server.url, "dora");
  const { username } = dora;
  secrets.push(dora.token);
  await dora.call("setAgentKey", { provider: "claude", api_key: API_KEY });
  await expectLogged("agent_key_set", username, { provider: "claude" });
  await dora.call("testAgentKey", { provider: "claude" });
  await expectLogged("agent_key_tested", username, { provider: "claude", works: true });
  const { entries } = await command("keys", "rotate");
  expect(entries).toMatchObject([{ event: "master_key_rotated", keys_resealed: 1 }]);
  await dora.call("removeAgentKey", { provider: "claude" });
  await expectLogged("agent_key_removed", username, { provider: "claude" });
});

test("tool servers and tokens of agents are logged", async () => {
  const erin = await signUp(server.url, "erin");
  const { username } = erin;
  secrets.push(erin.token, "tool-token-that-nobody-may-see");
  const added = await erin.call("addToolServer", {
    name: "office",
    url: "https://tools.invalid/mcp",
    token: "tool-token-that-nobody-may-see",
  });
  await expectLogged("tool_server_added", username);
  const own = `${username}:claude`;
  await erin.call("setAgentTools", { agent_username: own, grants: [] });
  await expectLogged("agent_tools_set", username);
  await erin.call("updateToolServer", { server_id: added.id, name: "bureau" });
  await expectLogged("tool_server_changed", username);
  await erin.call("removeToolServer", { server_id: added.id });
  await expectLogged("tool_server_removed", username);
  const agent = await erin.call("createAgent", { name: "program", kind: "external" });
  const { id, token } = await erin.call("createAgentToken", { agent_username: agent.username });
  secrets.push(token);
  await expectLogged("agent_token_created", username);
  await erin.call("revokeAgentToken", { token_id: id });
  await expectLogged("agent_token_revoked", username);
  await new Person(server.url, token, { ...erin.account }).call("getMe").catch(() => undefined);
  await expectLogged("agent_token_refused");
});

test("operators that are added and removed are logged", async () => {
  const { username } = await signUp(server.url, "olga");
  const operators = async (...args: string[]) => {
    const { told, entries } = await command("operators", ...args);
    return { told, events: entries.map(({ event, account }) => [event, account]) };
  };
  expect(await operators("add", username)).toEqual({
    told: `${username} is now an operator.`,
    events: [["operator_added", username]],
  });
  expect(await operators("add", username)).toMatchObject({ events: [] });
  expect(await operators("list")).toEqual({ told: username, events: [] });
  expect(await operators("remove", username)).toMatchObject({
    events: [["operator_removed", username]],
  });
  expect(await operators("list")).toEqual({ told: "", events: [] });
});

test("service keys, and calls with them, are logged", async () => {
  const { username } = await signUp(server.url, "petra");
  const serviceKeys = async (...args: string[]) => {
    const { told, entries } = await command("service-keys", ...args);
    return { told, events: entries.map(({ event, service_key }) => [event, service_key]) };
  };
  const { told: key, events } = await serviceKeys("create", "shop");
  secrets.push(key);
  expect(key).toMatch(/^pls_[A-Za-z0-9_-]{43}$/);
  expect(events).toEqual([["service_key_created", "shop"]]);
  const call = () => post(server.url, "getMe", {}, key, { "x-parley-as": username });
  expect((await call()).status).toBe(200);
  await expectLogged("acted_on_behalf", username, { service_key: "shop", operation: "getMe" });
  expect((await serviceKeys("list")).told).toMatch(/^shop: created \S+, last used \S+$/);
  expect(await serviceKeys("revoke", "shop")).toMatchObject({
    events: [["service_key_revoked", "shop"]],
  });
  expect((await call()).status).toBe(401);
  await expectLogged("service_key_refused", undefined, { address: "127.0.0.1" });
  expect((await serviceKeys("list")).told).toContain("revoked");
});

test("sign-ins with an OIDC issuer are logged", async () => {
  const token = (audience: string) =>
    new SignJWT({ preferred_username: "erin" })
      .setProtectedHeader({ alg: "ES256" })
      .setIssuer(issuerUrl())
      .setSubject("subject 1")
      .setAudience(audience)
      .setExpirationTime("5 minutes")
      .sign(privateKey);
  const [good, bad] = await Promise.all([token(AUDIENCE), token("another")]);
  secrets.push(good, bad);
  expect((await post(server.url, "getMe", {}, good)).status).toBe(200);
  await expectLogged("oidc_account_created", "erin", { issuer: issuerUrl() });
  await expectLogged("sign_in", "erin", { method: "oidc" });
  expect((await post(server.url, "getMe", {}, bad)).status).toBe(401);
  await expectLogged("oidc_token_refused", undefined, { address: "127.0.0.1" });
  // The test of OIDC covers this event: it needs data of an earlier version.
  seen.add("oidc_account_linked");
  // The tests of operators cover these.
  seen.add("account_suspended").add("account_restored");
});

test("exporting one's data and deleting one's account are logged", async () => {
  const frida = await signUp(server.url, "frida");
  const { username } = frida;
  secrets.push((await frida.call("exportMe", {})).url);
  await expectLogged("account_exported", username);
  const wrong = { password: NEW_PASSWORD };
  expect((await post(server.url, "deleteMe", wrong, frida.token)).status).toBe(403);
  await expectLogged("account_deletion_refused", username);
  await frida.call("deleteMe", { password: PASSWORD });
  await expectLogged("account_erased", username, { sessions_ended: 1 });
});

test("reports of messages are logged, without what was written", async () => {
  const backend = new Backend(server.url);
  const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
  const chat = await groupOf(alice, bob);
  const { id: message_id, content } = await say(alice, chat, "something unpleasant");
  const reason = "it is unpleasant";
  secrets.push(content, reason);
  await bob.call("reportMessage", { message_id, reason });
  const { username: account } = alice;
  await expectLogged("message_reported", account, { reporter: bob.username });
  const { items } = await backend.call("getReports", {});
  const report = items.find(({ message }) => message.id === message_id);
  await backend.call("resolveReport", { report_id: report?.id ?? "" });
  await expectLogged("report_resolved", account, { report: report?.id });
});

test("what is done to webhooks is logged, without their secrets", async () => {
  await using receiver = startReceiver();
  const backend = new Backend(server.url);
  const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
  const chat = await groupOf(alice, bob);
  const input = { url: receiver.url, events: ["events.messageNew"], chat_id: chat.id };
  const { id: webhook_id, secret } = await backend.call("createWebhook", input);
  secrets.push(secret, backend.key);
  const details = { webhook: webhook_id, service_key: "(PARLEY_SERVICE_KEY_FILE)" };
  await expectLogged("webhook_created", null, details);
  await say(alice, chat, "hello");
  await receiver.has(1);
  const delivered = async () =>
    (await backend.call("getDeliveries", { webhook_id, status: "delivered" })).items[0];
  let delivery = await delivered();
  while (!delivery) delivery = await delivered();
  receiver.answer(() => new Response(null, { status: 410 }));
  await backend.call("replayDelivery", { delivery_id: delivery.id });
  await expectLogged("webhook_replayed", null, details);
  await expectLogged("webhook_disabled", null, { webhook: webhook_id });
  await backend.call("setWebhook", { webhook_id, disabled: true });
  await expectLogged("webhook_changed", null, details);
  await backend.call("deleteWebhook", { webhook_id });
  const incoming = await alice.call("createIncomingHook", { chat_id: chat.id, name: "alerts" });
  secrets.push(incoming.url.split("/").at(-1) ?? "");
  await expectLogged("incoming_hook_created", alice.username, { webhook: incoming.id });
  await alice.call("deleteIncomingHook", { hook_id: incoming.id });
  await expectLogged("incoming_hook_deleted", alice.username, { webhook: incoming.id });
  await expectLogged("webhook_deleted", null, details);
});

test("imports of messages are logged, without their content", async () => {
  const backend = new Backend(server.url);
  const external_id = "imports";
  const { items } = await backend.call("upsertUsers", { users: [{ external_id }] });
  const asUser = backend.as(`id:${external_id}`);
  const { id } = await asUser.call("startChat", { usernames: [], kind: "group" });
  const content = "a past message that nobody may log";
  secrets.push(content);
  const created_at = "2024-05-01T09:30:00.000Z";
  const sender = items[0]?.account.username ?? "";
  const messages = [{ sender, content, created_at, client_msg_id: "1" }];
  await backend.call("importMessages", { chat_id: id, messages });
  const service_key = "(PARLEY_SERVICE_KEY_FILE)";
  await expectLogged("messages_imported", null, { service_key, conversation: id, messages: 1 });
});

test("repeated failures of one origin are logged once", async () => {
  // A new server: every minute, a server forgets what it has logged.
  await using own = await startServer({ PARLEY_LOG: "info", ...limits({ signups_per_hour: 2 }) });
  while ((await post(own.url, "signUp", freshAccount())).status !== 429);
  for (let times = 0; times < 5; times++) await post(own.url, "signUp", freshAccount());
  await post(own.url, "signIn", { username: "nobody_at_all", password: PASSWORD });
  await own.printed(/"event":"sign_in_failed".*\n/);
  const lines = linesOf(own.output()).filter(
    ({ event, operation }) => event === "throttled" && operation === "signUp",
  );
  expect(lines).toHaveLength(1);
});

let count = 0;
const freshAccount = () => ({ username: `many_${++count}`, password: PASSWORD });

test("the log contains no secret", () => {
  // The start-up lines show an example sign-up with a password.
  const log = server
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .join("\n");
  for (const secret of secrets) expect(log).not.toContain(secret);
});

test("every event is documented and tested here, and no other", () => {
  const page = readFileSync(join(import.meta.dir, "../docs/operating/audit-log.md"), "utf8");
  const documented = [...page.matchAll(/^\| `(\w+)` +\| [A-Z`]/gm)].map(([, name]) => name);
  expect(documented.slice(1)).toEqual([...auditActions]);
  expect([...seen].sort()).toEqual([...auditActions].sort());
});
