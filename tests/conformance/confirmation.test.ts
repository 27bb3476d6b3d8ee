import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createClient } from "@parley/client";
import { type OperationName, operations } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { failure, outcome, Person, post, signUp } from "@parley/testkit/client.ts";
import { Issuer } from "@parley/testkit/issuer.ts";
import { limits, startServer } from "@parley/testkit/server.ts";

const issuer = new Issuer();
await issuer.rotate();
const server = await startServer({
  ...serviceKeySetting(),
  PARLEY_OIDC_ISSUER: issuer.url,
  PARLEY_OIDC_AUDIENCE: "parley",
  PARLEY_OIDC_CLIENT_ID: "parley-web",
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  issuer[Symbol.dispose]();
});

const backend = new Backend(server.url);
const WINDOW_MS = 15 * 60_000;
const PASSWORD = "correct horse battery";
const key = { provider: "claude", api_key: "sandbox-0123456789" };
let count = 0;
const freshName = () => `conf_${process.pid}_${++count}`;

/** Moves the clock until a sign-in that was just made no longer counts. */
const waitOut = () => server.moveClock(WINDOW_MS);

const setKey = (person: Person) => outcome(person.call("setAgentKey", key));

async function issued(username: string): Promise<Person> {
  const { access_token, account } = await backend.call("issueToken", { username });
  return new Person(server.url, access_token, account);
}

async function productUser(): Promise<Person> {
  const { items } = await backend.call("upsertUsers", { users: [{ external_id: freshName() }] });
  return issued(items[0]?.account.username ?? "");
}

/** A sign-in in a browser by the issuer, which says when the person signed in there. */
async function finishSignIn(username: string, again: boolean, auth_time?: number) {
  const { body } = await post(server.url, "startOidcSignIn", { again });
  const { authorization_url, flow } = (body as { result: Record<string, string> }).result as {
    authorization_url: string;
    flow: string;
  };
  const claims = auth_time === undefined ? {} : { auth_time };
  const answer = { flow, ...issuer.authorize(authorization_url, username, claims) };
  return { authorization_url, answer: await post(server.url, "finishOidcSignIn", answer) };
}

describe("a sensitive call", () => {
  test("is made for fifteen minutes after the sign-in, and then needs a confirmation", async () => {
    const alice = await signUp(server.url);
    await server.moveClock(WINDOW_MS - 60_000);
    expect(await setKey(alice)).toBe("ok");
    await server.moveClock(60_000);
    const refused = await failure(alice.call("setAgentKey", key));
    expect(refused).toMatchObject({
      code: "confirmation_required",
      status: 403,
      parameters: { confirm_by: "password" },
    });
  });

  test("is made again once the person has confirmed their password, on either transport", async () => {
    const alice = await signUp(server.url);
    await using socket = await alice.connect();
    await waitOut();
    expect(await outcome(socket.call("setAgentKey", key))).toBe("confirmation_required");
    await alice.call("confirmPassword", { password: PASSWORD });
    expect(await outcome(socket.call("setAgentKey", key))).toBe("ok");
    expect(await setKey(alice)).toBe("ok");
    await waitOut();
    expect(await setKey(alice)).toBe("confirmation_required");
  });

  test("is confirmed for the session that confirmed it alone", async () => {
    const alice = await signUp(server.url);
    const { body } = await post(server.url, "signIn", {
      username: alice.username,
      password: PASSWORD,
    });
    const stolen = new Person(
      server.url,
      (body as { result: { access_token: string } }).result.access_token,
      alice.account,
    );
    await waitOut();
    await alice.call("confirmPassword", { password: PASSWORD });
    expect(await setKey(stolen)).toBe("confirmation_required");
  });

  test("is refused as before where the policy or the input forbids it", async () => {
    const alice = await signUp(server.url);
    await waitOut();
    expect(await outcome(alice.call("setAgentKey", { provider: "claude", api_key: "" }))).toBe(
      "bad_request",
    );
    await alice.call("confirmPassword", { password: PASSWORD });
    expect(await outcome(alice.call("createAgentToken", { agent_username: "nobody:here" }))).toBe(
      "not_found",
    );
  });

  test("needs no confirmation where the operator has set confirm_minutes to 0", async () => {
    await using own = await startServer(limits({ confirm_minutes: 0 }));
    const alice = await signUp(own.url);
    await own.moveClock(WINDOW_MS);
    expect(await outcome(alice.call("setAgentKey", key))).toBe("ok");
  });

  test("needs no confirmation of a service key that acts for a person", async () => {
    const user = await productUser();
    await waitOut();
    expect(await setKey(user)).toBe("confirmation_required");
    expect(await outcome(backend.as(user.username).call("setAgentKey", key))).toBe("ok");
  });
});

test("operations that pass on credentials, give access or send data elsewhere are sensitive", () => {
  const names = Object.keys(operations) as OperationName[];
  expect(names.filter((name) => operations[name].sensitive).toSorted()).toEqual([
    "addToolServer",
    "authorizeToolServer",
    "createAgentToken",
    "createIncomingHook",
    "createPasswordReset",
    "createWebhook",
    "eraseAccount",
    "exportMe",
    "setAgentKey",
    "setAgentTools",
    "setWebhook",
    "updateToolServer",
  ]);
});

describe("confirmPassword", () => {
  beforeEach(waitOut);

  test("refuses a wrong password, and records it", async () => {
    const alice = await signUp(server.url);
    await waitOut();
    expect(await outcome(alice.call("confirmPassword", { password: "wrong" }))).toBe("forbidden");
    expect(await setKey(alice)).toBe("confirmation_required");
    await alice.call("confirmPassword", { password: PASSWORD });
    const { items } = await backend.call("getAuditLog", { account: alice.username });
    expect(items.map(({ action }) => action)).toEqual([
      "password_confirmed",
      "password_confirmation_failed",
      "sign_up",
    ]);
  });

  test("slows down whoever guesses", async () => {
    const alice = await signUp(server.url);
    const codes = [];
    for (let n = 0; n < 12; n++) {
      codes.push(await outcome(alice.call("confirmPassword", { password: `wrong ${n}` })));
    }
    expect(codes).toContain("rate_limited");
  });

  test("is refused to people without a password, and to service keys", async () => {
    const user = await productUser();
    expect(await outcome(user.call("confirmPassword", { password: PASSWORD }))).toBe("forbidden");
    const delegate = backend.as(user.username);
    expect(await outcome(delegate.call("confirmPassword", { password: PASSWORD }))).toBe(
      "forbidden",
    );
  });
});

describe("somebody without a password", () => {
  test("is told to sign in again, and a new token of the product counts as a sign-in", async () => {
    const user = await productUser();
    expect(await setKey(user)).toBe("ok");
    await waitOut();
    const refused = await failure(user.call("exportMe"));
    expect(refused.parameters).toEqual({ confirm_by: "sign_in" });
    expect(await setKey(await issued(user.username))).toBe("ok");
  });

  test("needs a recent sign-in to delete the account", async () => {
    const user = await productUser();
    const { username } = user;
    await waitOut();
    expect(await outcome(user.call("deleteMe", { username }))).toBe("confirmation_required");
    expect(await outcome((await issued(username)).call("deleteMe", { username }))).toBe("ok");
  });

  test("uses a new token of the issuer", async () => {
    const name = freshName();
    const first = await issuer.token(name, { exp: Math.floor(server.now() / 1000) + 3600 });
    const call = async (token: string) => (await post(server.url, "setAgentKey", key, token)).body;
    expect(await call(first)).toMatchObject({ ok: true });
    await waitOut();
    expect(await call(first)).toMatchObject({
      code: "confirmation_required",
      parameters: { confirm_by: "sign_in" },
    });
    const later = { exp: Math.floor(server.now() / 1000) + 3600 };
    expect(await call(await issuer.token(name, later))).toMatchObject({ ok: true });
  });

  test("is asked by the issuer to sign in again, which must say that they did", async () => {
    const seconds = () => Math.floor(server.now() / 1000);
    const claims = { exp: seconds() + 3600 };
    issuer.idClaims = claims;
    const name = freshName();
    const { authorization_url, answer } = await finishSignIn(name, true, seconds());
    const { searchParams } = new URL(authorization_url);
    expect(searchParams.get("prompt")).toBe("login");
    expect(searchParams.get("max_age")).toBe("0");
    expect(answer.body.ok).toBe(true);
    for (const signedInAt of [undefined, seconds() - 3600]) {
      const stale = await finishSignIn(name, true, signedInAt);
      expect(stale.answer.body).toMatchObject({ code: "unauthorized" });
    }
    const first = await finishSignIn(name, false);
    expect(first.answer.body.ok).toBe(true);
    issuer.idClaims = {};
  });
});

describe("the SDK", () => {
  test("asks the person, and repeats the call", async () => {
    const alice = await signUp(server.url);
    const asked: string[] = [];
    const client = createClient({
      url: server.url,
      token: alice.token,
      confirm: async (by) => {
        asked.push(by);
        await client.confirmPassword({ password: PASSWORD });
        return true;
      },
    });
    await waitOut();
    await client.setAgentKey(key);
    await client.setAgentKey(key);
    expect(asked).toEqual(["password"]);
  });

  test("fails the call if the person does not confirm", async () => {
    const alice = await signUp(server.url);
    const client = createClient({
      url: server.url,
      token: alice.token,
      confirm: async () => false,
    });
    await waitOut();
    const refused = await client.setAgentKey(key).catch((error) => error);
    expect(refused).toMatchObject({ code: "confirmation_required", confirmBy: "password" });
  });

  test("gets a new token from a product, and keeps the old one if there is no other", async () => {
    const { username } = await productUser();
    const { token } = await issued(username);
    let tokens = 0;
    const client = createClient({
      url: server.url,
      token,
      getToken: async () => (++tokens === 1 ? token : (await issued(username)).token),
    });
    await client.connect();
    await waitOut();
    expect(await client.setAgentKey(key).catch(({ code }) => code)).toBe("confirmation_required");
    expect(client.status).toBe("online");
    await client.setAgentKey(key);
    expect(tokens).toBe(2);
    client.close();
  });
});
