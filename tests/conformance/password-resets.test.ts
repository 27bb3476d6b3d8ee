import { afterAll, describe, expect, test } from "bun:test";
import { closeCodes } from "@parley/protocol";
import { addSecondFactor } from "@parley/testkit/authenticator.ts";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { failure, type Person, post, signUp, transports } from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

const settings = { ...noRates, ...serviceKeySetting(), PARLEY_OPERATORS: "olga, oscar" };
const server = await startServer(settings);
afterAll(() => server[Symbol.asyncDispose]());
const olga = await operatorAt(server, "olga");

const OLD = "correct horse battery";
const NEW = "battery horse staple";
const DAY_MS = 24 * 60 * 60 * 1000;

const signIn = ({ username }: Person, password: string, { url } = server) =>
  post(url, "signIn", { username, password });

/** The token of a link that an operator makes for somebody. */
async function tokenFor({ username }: Person, operator: Pick<Person, "call"> = olga) {
  const { url } = await operator.call("createPasswordReset", { username });
  return new URL(url).hash.slice(1);
}

const reset = (token: string, new_password = NEW, { url } = server) =>
  post(url, "resetPassword", { token, new_password });

describe.each(transports)("over %s", (transport) => {
  test("a reset link sets a new password once and ends all sessions", async () => {
    await using operator = await olga.via(transport);
    await using caller = await olga.via(transport);
    const alice = await signUp(server.url, "alice");
    const { username } = alice;
    await using socket = await alice.connect();
    const { url, expires_at } = await operator.call("createPasswordReset", { username });
    const { origin, pathname, hash } = new URL(url);
    expect(origin).toBe(server.url);
    expect(pathname + hash).toMatch(/^\/reset-password#plr_[A-Za-z0-9_-]{43}$/);
    expect(Math.abs(Date.parse(expires_at) - server.now() - DAY_MS)).toBeLessThan(60_000);
    const token = hash.slice(1);
    expect(await caller.call("getPasswordReset", { token })).toEqual({ username, expires_at });

    await caller.call("resetPassword", { token, new_password: NEW });
    await socket.until(() => socket.closed, "the end of the session");
    expect(socket.closed?.code).toBe(closeCodes.signedOut);
    expect((await failure(alice.call("getMe"))).code).toBe("unauthorized");
    expect((await signIn(alice, OLD)).status).toBe(401);
    expect((await signIn(alice, NEW)).status).toBe(200);
    const again = caller.call("resetPassword", { token, new_password: OLD });
    expect((await failure(again)).code).toBe("not_found");
    expect((await failure(caller.call("getPasswordReset", { token }))).code).toBe("not_found");
  });
});

test("the audit log has who made a reset link, and its use, but not the token", async () => {
  const alice = await signUp(server.url, "alice");
  const token = await tokenFor(alice);
  await reset(token);
  const { items } = await olga.call("getAuditLog", { account: alice.username });
  expect(items.map(({ action, operator, details }) => ({ action, operator, details }))).toEqual([
    { action: "password_reset", operator: null, details: { sessions_ended: 1 } },
    { action: "password_reset_created", operator: "olga", details: {} },
    expect.objectContaining({ action: "sign_up" }),
  ]);
  expect(JSON.stringify(items)).not.toContain("plr_");
});

test("every token that does not work gets the same answer", async () => {
  await using own = await startServer(settings);
  const operator = await operatorAt(own, "olga");
  const make = (person: Person) => tokenFor(person, operator);
  const [used, replaced, changed, suspended, expired] = await Promise.all(
    ["used", "replaced", "changed", "suspended", "expired"].map((name) => signUp(own.url, name)),
  );
  const tokens = [`plr_${"x".repeat(43)}`, "anything"];
  tokens.push(await make(used as Person));
  expect((await reset(tokens[2] as string, NEW, own)).status).toBe(200);
  tokens.push(await make(replaced as Person));
  await make(replaced as Person);
  tokens.push(await make(changed as Person));
  await changed?.call("changePassword", { current_password: OLD, new_password: NEW });
  tokens.push(await make(suspended as Person));
  await operator.call("suspendAccount", { username: (suspended as Person).username });
  tokens.push(await make(expired as Person));
  await own.moveClock(DAY_MS);
  const answers = await Promise.all(
    tokens.map((token) => post(own.url, "getPasswordReset", { token })),
  );
  answers.push(await reset(tokens.at(-1) as string, NEW, own));
  for (const { status, body } of answers) {
    expect({ status, body }).toEqual({ status: 404, body: answers[0]?.body as never });
  }
});

test("a network that guesses tokens of reset links has to wait", async () => {
  await using own = await startServer(settings);
  const operator = await operatorAt(own, "olga");
  const token = await tokenFor(await signUp(own.url, "alice"), operator);
  const guess = () => post(own.url, "getPasswordReset", { token: "plr_guess" });
  for (let count = 0; count < 10; count++) expect((await guess()).status).toBe(404);
  expect((await guess()).status).toBe(429);
  expect((await reset(token, NEW, own)).status).toBe(429);
  const { items } = await operator.call("getAuditLog", { action: "password_reset_refused" });
  expect(items).toHaveLength(1);
});

test("of two uses of a reset link at the same moment one succeeds", async () => {
  const token = await tokenFor(await signUp(server.url, "alice"));
  const answers = await Promise.all([reset(token, NEW), reset(token, `${NEW} too`)]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 404]);
});

test("a password that is easy to guess is refused and leaves the reset link as it is", async () => {
  const alice = await signUp(server.url, "alice");
  const token = await tokenFor(alice);
  const { body } = await reset(token, "password123");
  expect(body).toMatchObject({
    code: "bad_request",
    parameters: { fields: { new_password: expect.any(String) } },
  });
  expect((await reset(token)).status).toBe(200);
});

test("a reset link keeps the second factor", async () => {
  const alice = await signUp(server.url, "alice");
  await addSecondFactor(alice, OLD);
  await reset(await tokenFor(alice));
  expect((await signIn(alice, NEW)).body).toMatchObject({ code: "second_factor_required" });
});

test("a network that had to wait after wrong passwords signs in after a reset", async () => {
  const alice = await signUp(server.url, "alice");
  for (let count = 0; count < 5; count++) await signIn(alice, "wrong horse battery");
  expect((await signIn(alice, OLD)).status).toBe(429);
  await reset(await tokenFor(alice));
  expect((await signIn(alice, NEW)).status).toBe(200);
});

test("createPasswordReset is 404 for nobody and agents", async () => {
  for (const username of ["nobody_here", "olga:claude"]) {
    const failed = await failure(olga.call("createPasswordReset", { username }));
    expect({ username, code: failed.code }).toEqual({ username, code: "not_found" });
  }
});

test("createPasswordReset is 409 for operators, suspended people and those without a password", async () => {
  const alice = await signUp(server.url, "alice");
  await olga.call("suspendAccount", { username: alice.username });
  const backend = new Backend(server.url);
  const { items } = await backend.call("upsertUsers", { users: [{ external_id: "customer 1" }] });
  const customer = items[0]?.account.username as string;
  for (const username of ["olga", alice.username, customer]) {
    const failed = await failure(backend.call("createPasswordReset", { username }));
    expect({ username, code: failed.code }).toEqual({ username, code: "conflict" });
  }
});
