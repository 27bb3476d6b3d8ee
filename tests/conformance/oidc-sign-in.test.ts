import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OperationName, OutputOf } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { Person, post, signUp } from "@parley/testkit/client.ts";
import { Issuer } from "@parley/testkit/issuer.ts";
import { startServer } from "@parley/testkit/server.ts";
import type { JWTPayload } from "jose";
import { createVault } from "../../packages/server/src/security/vault.ts";

const issuer = new Issuer();
await issuer.rotate();
const MASTER_KEY = Buffer.alloc(32, 7);
const settings = {
  ...serviceKeySetting(),
  PARLEY_OIDC_ISSUER: issuer.url,
  PARLEY_OIDC_CLIENT_ID: "parley web",
  PARLEY_OIDC_NAME: "Example SSO",
  PARLEY_MASTER_KEY: MASTER_KEY.toString("base64"),
  PARLEY_OPERATORS: "olga",
};
const server = await startServer(settings);
const backend = new Backend(server.url);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  issuer[Symbol.dispose]();
});
afterEach(() => {
  issuer.answerToken = null;
  issuer.idClaims = {};
  issuer.userinfo = {};
  issuer.tokenRequests.length = 0;
});

let count = 0;
const freshName = () => `oda_${process.pid}_${++count}`;

/** The result of a public operation. */
async function call<Name extends OperationName>(
  name: Name,
  input: object = {},
  url = server.url,
): Promise<OutputOf<Name>> {
  const { body } = await post(url, name, input);
  if (!body.ok) throw new Error(`${body.code}: ${body.description}`);
  return body.result as OutputOf<Name>;
}

/** A sign-in of this username at the issuer, ready to be finished. */
async function begun(
  username: string,
  claims: JWTPayload = {},
  { url = server.url, from = issuer } = {},
) {
  const { authorization_url, flow } = await call("startOidcSignIn", {}, url);
  return {
    authorization_url,
    answer: { flow, ...from.authorize(authorization_url, username, claims) },
  };
}

const finish = (answer: object, url = server.url) => call("finishOidcSignIn", answer, url);

async function signedIn(username: string, claims: JWTPayload = {}) {
  const { answer } = await begun(username, claims);
  const { access_token, account } = await finish(answer);
  return new Person(server.url, access_token, account);
}

/** The code and the message of the failure. */
async function refusal(answer: object, url = server.url): Promise<string> {
  const { body } = await post(url, "finishOidcSignIn", answer);
  if (body.ok) throw new Error("the sign-in succeeded");
  return body.description;
}

describe("getSignInMethods", () => {
  test("tells of the issuer and of sign-up", async () => {
    expect(await call("getSignInMethods")).toEqual({
      password: true,
      sign_up: "open",
      oidc: { name: "Example SSO" },
    });
  });

  test("tells of what is switched off", async () => {
    await using own = await startServer({
      PARLEY_SIGNUP: "invite:code",
      PARLEY_PASSWORD_SIGN_IN: "off",
    });
    const none = { password: false, sign_up: "closed", oidc: null };
    expect(await call("getSignInMethods", {}, own.url)).toEqual(none as never);
    const credentials = { username: "ada", password: "correct horse battery" };
    for (const name of ["signIn", "signUp"]) {
      expect((await post(own.url, name, credentials)).body).toMatchObject({ code: "forbidden" });
    }
  });
});

describe("signing in with the issuer", () => {
  test("asks for a code with PKCE, state and nonce, to come back to this server only", async () => {
    const { authorization_url, answer } = await begun(freshName());
    const { origin, pathname, searchParams } = new URL(authorization_url);
    expect(origin + pathname).toBe(`${issuer.url}/authorize`);
    const random = expect.stringMatching(/^[\w-]{43}$/);
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: "code",
      client_id: "parley web",
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/sign-in$/),
      scope: "openid profile",
      state: random,
      nonce: random,
      code_challenge: random,
      code_challenge_method: "S256",
    });
    // The verifier and the nonce are in the flow, which only the server can open.
    expect(answer.flow).not.toContain(searchParams.get("nonce") ?? "");
    const other = new URL((await begun(freshName())).authorization_url).searchParams;
    for (const name of ["state", "nonce", "code_challenge"]) {
      expect(other.get(name)).not.toBe(searchParams.get(name));
    }
  });

  test("creates the account at the first time, with its agents, and opens an ordinary session", async () => {
    const username = freshName();
    const person = await signedIn(username, { name: "Ada Lovelace" });
    expect(person.account).toEqual({
      username,
      kind: "human",
      display_name: "Ada Lovelace",
      version: expect.any(Number),
    });
    expect(person.token).toStartWith("ply_");
    expect(await person.call("getMe")).toMatchObject(person.account);
    const agent = await person.call("getUser", { username: `${username}:claude` });
    expect(agent.kind).toBe("agent");
    expect((await person.call("getSessions")).items).toMatchObject([{ current: true }]);
    await person.call("signOut");
    expect((await post(server.url, "getMe", {}, person.token)).status).toBe(401);
    expect(issuer.tokenRequests[0]?.authorization).toBeNull();
    expect(issuer.tokenRequests[0]?.body.get("client_id")).toBe("parley web");
  });

  test("finds the same account again, by its subject only, and follows the issuer's name", async () => {
    const username = freshName();
    const sub = `subject of ${username}`;
    const first = await signedIn(username, { sub, name: "Ada Byron" });
    const second = await signedIn(freshName(), { sub, name: "Ada Lovelace" });
    expect(second.account).toMatchObject({ username, display_name: "Ada Lovelace" });
    expect(await second.call("getMe")).toMatchObject(second.account);
    expect((await first.call("getSessions")).items).toHaveLength(2);
  });

  test("never enters an account with a password, or of a product, but takes another name", async () => {
    const owner = await signUp(server.url, "owner");
    expect((await signedIn(owner.username)).username).toBe(`${owner.username}_2`);
    const username = freshName();
    await backend.call("upsertUsers", { users: [{ external_id: username, username }] });
    expect((await signedIn(username)).username).toBe(`${username}_2`);
  });

  test("never becomes an operator who does not exist yet, but takes another name", async () => {
    const person = await signedIn("olga");
    expect(person.username).toBe("olga_2");
    expect(await person.call("getMe")).not.toHaveProperty("is_operator");
  });

  test("reads the claims from userinfo if the ID token lacks them", async () => {
    const username = freshName();
    issuer.idClaims = { preferred_username: undefined };
    issuer.userinfo = { preferred_username: username, name: "Ada Lovelace" };
    expect((await signedIn(username)).account).toMatchObject({
      username,
      display_name: "Ada Lovelace",
    });
    issuer.userinfo = { sub: "somebody else", preferred_username: username };
    expect(await refusal((await begun(username)).answer)).toContain("of another person");
    issuer.userinfo = {};
    expect(await refusal((await begun(username)).answer)).toBe(
      "unauthorized: the token has no preferred_username",
    );
  });

  test("is in the audit log", async () => {
    const username = freshName();
    await signedIn(username);
    const { items } = await backend.call("getAuditLog", { account: username });
    expect(items.map(({ action }) => action).sort()).toEqual(["oidc_account_created", "sign_in"]);
    const { answer } = await begun(username);
    await refusal({ ...answer, state: "another" });
    const failures = await backend.call("getAuditLog", { action: "sign_in_failed" });
    expect(failures.items[0]?.details).toMatchObject({ method: "oidc" });
  });

  test("is refused for a suspended account", async () => {
    const username = freshName();
    await signedIn(username);
    await backend.call("suspendAccount", { username });
    const { answer } = await begun(username);
    const { body } = await post(server.url, "finishOidcSignIn", answer);
    expect(body).toMatchObject({ code: "suspended" });
  });

  test("does not make ID tokens bearer tokens", async () => {
    const token = await issuer.token(freshName(), { aud: "parley web" });
    expect((await post(server.url, "getMe", {}, token)).status).toBe(401);
  });

  test("is not found without an issuer", async () => {
    await using own = await startServer();
    for (const [name, input] of [
      ["startOidcSignIn", {}],
      ["finishOidcSignIn", { flow: "flow", state: "state", code: "code" }],
    ] as const) {
      expect((await post(own.url, name, input)).body).toMatchObject({ code: "not_found" });
    }
  });
});

describe("an answer is refused", () => {
  const notHere = "unauthorized: this sign-in was not begun here";

  test("with the flow of another browser", async () => {
    const mine = await begun(freshName());
    const theirs = await begun(freshName());
    expect(await refusal({ ...theirs.answer, flow: mine.answer.flow })).toBe(notHere);
    // The code of another sign-in does not fit the verifier.
    const injected = { ...mine.answer, code: theirs.answer.code };
    expect(await refusal(injected)).toBe(
      "unauthorized: the sign-in service did not accept the code",
    );
  });

  test("with a flow that this server has not sealed for this purpose", async () => {
    const { answer } = await begun(freshName());
    const { device } = await call("signUp", { username: freshName(), password: "correct horse" });
    for (const flow of ["x", `${answer.flow.slice(0, -4)}AAAA`, device]) {
      expect(await refusal({ ...answer, flow })).toBe(notHere);
    }
  });

  test("that is replayed", async () => {
    const { answer } = await begun(freshName());
    await finish(answer);
    expect(await refusal(answer)).toBe("unauthorized: the sign-in service did not accept the code");
  });

  test("after the time for it has passed", async () => {
    const sealed = createVault([MASTER_KEY]);
    const { answer } = await begun(freshName());
    const binding = { owner_id: 0, provider: "oidc sign-in" };
    const flow = JSON.parse(sealed.open(answer.flow, binding));
    expect(flow.expires_at - Date.now()).toBeLessThanOrEqual(15 * 60_000);
    const late = sealed.seal(JSON.stringify({ ...flow, expires_at: Date.now() - 1 }), binding);
    expect(await refusal({ ...answer, flow: late })).toBe(
      "unauthorized: the sign-in took too long",
    );
    expect(issuer.tokenRequests).toEqual([]);
  });

  test("of another issuer, before its code is sent anywhere", async () => {
    const { answer } = await begun(freshName());
    const other = { ...answer, iss: "https://evil.example.com" };
    expect(await refusal(other)).toContain("not from the configured sign-in service");
    expect(issuer.tokenRequests).toEqual([]);
    await finish({ ...answer, iss: issuer.url });
  });

  test("without a name of the issuer, if the issuer always sends it", async () => {
    using naming = new Issuer();
    await naming.rotate();
    naming.description = { authorization_response_iss_parameter_supported: true };
    await using own = await startServer({ ...settings, PARLEY_OIDC_ISSUER: naming.url });
    const { answer } = await begun(freshName(), {}, { url: own.url, from: naming });
    expect(await refusal(answer, own.url)).toContain("not from the configured sign-in service");
    await finish({ ...answer, iss: naming.url }, own.url);
  });

  test.each<[string, JWTPayload]>([
    ["of another sign-in", { nonce: "another" }],
    ["without a nonce", { nonce: undefined }],
    ["for another client", { aud: "another" }],
    ["that was issued to another client", { aud: ["parley web", "another"], azp: "another" }],
    ["for several clients, without saying which", { aud: ["parley web", "another"] }],
    ["of another issuer", { iss: "https://evil.example.com" }],
    ["that has expired", { exp: Math.floor(Date.now() / 1000) - 10 }],
  ])("with an ID token %s", async (_, claims) => {
    issuer.idClaims = claims;
    const username = freshName();
    const { answer } = await begun(username);
    expect(await refusal(answer)).toStartWith("unauthorized: ");
    const person = await signUp(server.url, "own");
    expect((await post(server.url, "getUser", { username }, person.token)).status).toBe(404);
  });

  test("with input that is malformed", async () => {
    const { answer } = await begun(freshName());
    for (const wrong of [{ code: "" }, { state: 1 }, { flow: "x".repeat(2049) }, { iss: "" }]) {
      const { body } = await post(server.url, "finishOidcSignIn", { ...answer, ...wrong });
      expect(body).toMatchObject({ code: "bad_request" });
    }
  });
});

describe("an issuer that fails", () => {
  const unavailable = async (answer: object, url = server.url) => {
    const { body } = await post(url, "finishOidcSignIn", answer);
    expect(body).toMatchObject({
      code: "unavailable",
      parameters: { retry_after: expect.any(Number) },
    });
  };

  test.each<[string, () => Response]>([
    ["an error of its own", () => new Response(null, { status: 500 })],
    ["no JSON", () => new Response("<html>")],
    ["no ID token", () => Response.json({ access_token: "x" })],
    ["a refusal of this client", () => Response.json({ error: "invalid_client" }, { status: 401 })],
    ["a redirect", () => Response.redirect("http://127.0.0.1:1/", 307)],
    ["a megabyte", () => Response.json({ id_token: "x".repeat(1_000_000) })],
  ])("with %s is a 503", async (_, answerToken) => {
    const { answer } = await begun(freshName());
    issuer.answerToken = answerToken;
    await unavailable(answer);
  });

  test("by not answering is a 503 within seconds", async () => {
    const { answer } = await begun(freshName());
    const never = Promise.withResolvers<Response>();
    issuer.answerToken = () => never.promise;
    const started = performance.now();
    await unavailable(answer);
    expect(performance.now() - started).toBeLessThan(20_000);
    never.resolve(new Response());
  });

  test("is a 503 while it is down, at both steps", async () => {
    using failing = new Issuer();
    await failing.rotate();
    await failing.goAway();
    await using own = await startServer({ ...settings, PARLEY_OIDC_ISSUER: failing.url });
    const { body } = await post(own.url, "startOidcSignIn", {});
    expect(body).toMatchObject({ code: "unavailable" });
    failing.comeBack();
    const { answer } = await begun(freshName(), {}, { url: own.url, from: failing });
    await failing.goAway();
    await unavailable(answer, own.url);
  });

  test("because an address could be tampered with is not used", async () => {
    using lying = new Issuer();
    await lying.rotate();
    lying.description = { token_endpoint: "http://id.example.com/token" };
    await using own = await startServer({ ...settings, PARLEY_OIDC_ISSUER: lying.url });
    const { answer } = await begun(freshName(), {}, { url: own.url, from: lying });
    await unavailable(answer, own.url);
    await own.printed(/no https address/);
  });
});

describe("a client secret", () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-secret-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const secret = join(folder, "secret");
  writeFileSync(secret, "s3cret:+ %\n");

  test.each([
    ["by Basic authentication", undefined],
    ["in the body, if the issuer accepts nothing else", ["client_secret_post"]],
  ])("is sent %s", async (_, methods) => {
    using strict = new Issuer();
    await strict.rotate();
    strict.description = { token_endpoint_auth_methods_supported: methods };
    await using own = await startServer({
      ...settings,
      PARLEY_OIDC_ISSUER: strict.url,
      PARLEY_OIDC_CLIENT_SECRET_FILE: secret,
    });
    const { answer } = await begun(freshName(), {}, { url: own.url, from: strict });
    await finish(answer, own.url);
    const [request] = strict.tokenRequests;
    const basic = Buffer.from("parley+web:s3cret%3A%2B+%25").toString("base64");
    expect(request?.authorization).toBe(methods ? null : `Basic ${basic}`);
    expect(request?.body.get("client_secret")).toBe(methods ? "s3cret:+ %" : null);
    strict.answerToken = () => Response.json({ error: "invalid_client" }, { status: 401 });
    await refusal((await begun(freshName(), {}, { url: own.url, from: strict })).answer, own.url);
    await own.printed(/OIDC code exchange failed/);
    expect(own.output()).not.toContain("s3cret");
  });
});
