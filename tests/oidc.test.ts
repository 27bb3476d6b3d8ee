import { afterAll, describe, expect, test } from "bun:test";
import { failure, Person, post, RawSocket, Socket, signUp } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { Issuer } from "@parley/testkit/issuer.ts";
import { nodesOf } from "@parley/testkit/nodes.ts";
import { onSeveralNodes, startServer, type TestServer } from "@parley/testkit/server.ts";
import { exportSPKI, generateKeyPair, SignJWT } from "jose";

const AUDIENCE = "parley";

const issuer = new Issuer();
await issuer.rotate();
const environment = {
  PARLEY_OIDC_ISSUER: issuer.url,
  PARLEY_OIDC_AUDIENCE: AUDIENCE,
  PARLEY_OPERATORS: "olga",
};
const server = await startServer(environment);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  issuer[Symbol.dispose]();
});

let count = 0;
const freshName = () => `ada_${process.pid}_${++count}`;
const human = (username: string, display_name = username) => ({
  username,
  kind: "human" as const,
  display_name,
  version: 0,
});
const as = (username: string, token: string) => new Person(server.url, token, human(username));
const statusOf = async (token: string, url = server.url) =>
  (await post(url, "getMe", {}, token)).status;
const seconds = () => Math.floor(Date.now() / 1000);

describe("a token of the issuer", () => {
  test("creates the account on first use, with its agents", async () => {
    const username = freshName();
    const person = as(username, await issuer.token(username, { name: "Ada Lovelace" }));
    expect(await person.call("getMe")).toMatchObject(human(username, "Ada Lovelace"));
    expect(await person.call("getMe")).toMatchObject(human(username, "Ada Lovelace"));
    for (const provider of ["claude", "gpt"]) {
      const agent = await person.call("getUser", { username: `${username}:${provider}` });
      expect(agent.kind).toBe("agent");
    }
  });

  test("creates one account for concurrent calls", async () => {
    const username = freshName();
    const tokens = await Promise.all(
      Array.from({ length: 8 }, (_, n) => issuer.token(username, { jti: `${n}` })),
    );
    const answers = await Promise.all(tokens.map((token) => as(username, token).call("getMe")));
    expect(answers).toMatchObject(tokens.map(() => human(username)));
  });

  test("gives a display name of one line, whatever the issuer sends", async () => {
    const username = freshName();
    const person = as(username, await issuer.token(username, { name: " Ada\u0000\nLovelace \t" }));
    expect(await person.call("getMe")).toMatchObject(human(username, "Ada Lovelace"));
  });

  test("belongs to the same account as every other token with that subject, whatever its username", async () => {
    const username = freshName();
    const sub = `subject of ${username}`;
    const first = as(username, await issuer.token(username.toUpperCase(), { sub }));
    await first.call("updateMe", { display_name: "Ada" });
    const second = as(username, await issuer.token(freshName(), { sub, jti: "2" }));
    expect(await second.call("getMe")).toMatchObject({ username, display_name: "Ada" });
    expect((await second.call("getSessions")).items).toHaveLength(2);
  });

  test("creates one account and one session when it is used concurrently", async () => {
    const username = freshName();
    const person = as(username, await issuer.token(username));
    const seen = await Promise.all(Array.from({ length: 8 }, () => person.call("getMe")));
    expect(seen).toMatchObject(seen.map(() => human(username)));
    expect((await person.call("getSessions")).items).toHaveLength(1);
  });

  test("opens a socket, in the query and in the header", async () => {
    const username = freshName();
    const token = await issuer.token(username);
    await using socket = await Socket.open(server.url, token);
    expect((await socket.event("events.hello")).params).toEqual(human(username));
    expect(await socket.call("getMe")).toMatchObject(human(username));
    const authorization = `Bearer ${token}`;
    await using other = await RawSocket.open(server.url, "/api/ws", { authorization });
    expect(other.answer?.status).toBe(101);
  });

  test("may have several audiences", async () => {
    const username = freshName();
    expect(await statusOf(await issuer.token(username, { aud: ["other", AUDIENCE] }))).toBe(200);
  });

  test("does not affect the tokens of the service", async () => {
    const person = await signUp(server.url, "own");
    expect(await person.call("getMe")).toMatchObject(person.account);
  });

  test("truncates a long display name between characters", async () => {
    const username = freshName();
    const person = as(username, await issuer.token(username, { name: `${"x".repeat(63)}😀😀` }));
    const { display_name } = await person.call("getMe");
    expect(display_name).not.toContain("\ufffd");
    expect(display_name.isWellFormed()).toBe(true);
  });
});

describe("a token is refused with 401", () => {
  const refused = async (token: string) => {
    expect(await statusOf(token)).toBe(401);
    await using socket = await RawSocket.open(server.url, `/api/ws?token=${token}`);
    expect(socket.answer?.status).toBe(401);
  };
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");

  test("of another issuer", async () => {
    await refused(await issuer.token(freshName(), { iss: "https://evil.example.com" }));
  });

  test("for another audience", async () => {
    await refused(await issuer.token(freshName(), { aud: "another-service" }));
  });

  test("that has expired, is not valid yet, or has no expiry", async () => {
    await refused(await issuer.token(freshName(), { exp: seconds() - 10 }));
    await refused(await issuer.token(freshName(), { nbf: seconds() + 600 }));
    const [kid, { privateKey }] = issuer.key();
    const eternal = new SignJWT({ preferred_username: freshName() })
      .setProtectedHeader({ alg: "ES256", kid })
      .setIssuer(issuer.url)
      .setAudience(AUDIENCE);
    await refused(await eternal.sign(privateKey));
  });

  test("with a signature by another key, or that was changed after signing", async () => {
    const [kid] = issuer.key();
    const forger = await generateKeyPair("ES256");
    await refused(await issuer.token(freshName(), {}, [kid, forger]));
    const [header, , signature] = (await issuer.token(freshName())).split(".");
    const claims = { iss: issuer.url, aud: AUDIENCE, exp: seconds() + 600 };
    const payload = encoded({ ...claims, preferred_username: freshName() });
    await refused(`${header}.${payload}.${signature}`);
  });

  test("without a signature, or signed with the public key as a shared secret", async () => {
    const [kid, { publicKey }] = issuer.key();
    const claims = {
      iss: issuer.url,
      aud: AUDIENCE,
      exp: seconds() + 600,
      preferred_username: freshName(),
    };
    for (const alg of ["none", "None", "NONE"]) {
      await refused(`${encoded({ alg, kid })}.${encoded(claims)}.`);
      await refused(`${encoded({ alg, kid })}.${encoded(claims)}.AAAA`);
    }
    const secret = new TextEncoder().encode(await exportSPKI(publicKey));
    await refused(await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid }).sign(secret));
  });

  test.each([undefined, "", "  ", true, null, [["ada"]]])(
    "whose claim %j is no name",
    async (preferred_username) => {
      await refused(await issuer.token("", { preferred_username }));
    },
  );

  test.each([
    ["empty", ""],
    ["longer than 255 characters", "x".repeat(256)],
    ["text with a control character", "a\u0000b"],
  ])("whose subject is %s", async (_, sub) => {
    await refused(await issuer.token(freshName(), { sub }));
  });

  test("that is not a JWT", async () => {
    for (const token of ["a.b.c", "..", `${encoded({})}.${encoded({})}.x`, "ey.ey.ey"]) {
      await refused(token);
    }
  });

  test("and creates no account", async () => {
    const username = freshName();
    await refused(await issuer.token(username, { aud: "another-service" }));
    const person = await signUp(server.url, "own");
    expect((await failure(person.call("getUser", { username }))).code).toBe("not_found");
  });
});

describe("the account of a subject", () => {
  const nameOf = async (token: string, url = server.url) => {
    const { body } = await post(url, "getMe", {}, token);
    if (!body.ok) throw new Error(body.description);
    return (body.result as { username: string }).username;
  };

  test("is never one with a password, whatever username the issuer sends", async () => {
    const owner = await signUp(server.url, "owner");
    const token = await issuer.token(owner.username);
    expect(await nameOf(token)).toBe(`${owner.username}_2`);
    expect(await owner.call("getMe")).toMatchObject(owner.account);
    expect((await owner.call("getSessions")).items).toHaveLength(1);
  });

  test("is never one that PARLEY_OPERATORS names", async () => {
    const token = await issuer.token("olga");
    expect(await nameOf(token)).toBe("olga_2");
    expect(await as("olga_2", token).call("getMe")).not.toHaveProperty("is_operator");
  });

  test("differs for another subject with the same username", async () => {
    const username = freshName();
    const tokens = await Promise.all(
      ["one", "two", "three"].map((sub) => issuer.token(username, { sub: `${sub} ${username}` })),
    );
    const names: string[] = [];
    for (const token of tokens) names.push(await nameOf(token));
    expect(names).toEqual([username, `${username}_2`, `${username}_3`]);
  });

  test.each([
    ["Zoë.Ångström@example.com", "zoe_angstrom"],
    ["owner:claude", "owner_claude"],
    ["x", "user"],
    ["💬", "user_2"],
    ["admin", "admin_2"],
    ["a".repeat(40), "a".repeat(32)],
  ])("has a username near to %s", async (wish, username) => {
    expect(await nameOf(await issuer.token(wish))).toBe(username);
  });

  test("has the display name of the issuer, also after a change", async () => {
    const username = freshName();
    const renamed = { ...human(username, "Ada Lovelace"), version: expect.any(Number) };
    const first = as(username, await issuer.token(username, { name: "Ada Byron" }));
    const friend = await signUp(server.url, "friend");
    await friend.call("startChat", { usernames: [(await first.call("getMe")).username] });
    await using socket = await friend.connect();
    const second = as(
      username,
      await issuer.token(username, { name: "Ada\u202e Lovelace", jti: "2" }),
    );
    expect(await second.call("getMe")).toMatchObject(renamed);
    const { params } = await socket.event("events.accountUpdated");
    expect(params).toEqual(renamed);
    const third = as(username, await issuer.token(username, { name: "Administrator", jti: "3" }));
    expect(await third.call("getMe")).toMatchObject(renamed);
  });

  // Edits the SQLite file, which several nodes do not have.
  test.skipIf(onSeveralNodes)("of an earlier version is linked by its username, once", async () => {
    await using own = await startServer({ ...environment, PARLEY_LOG: "info" });
    const username = freshName();
    const person = new Person(own.url, await issuer.token(username), human(username));
    await person.call("updateMe", { display_name: "From earlier" });
    await own.stop();
    using db = databaseOf(own);
    db.run("DELETE FROM identities");
    db.run("DELETE FROM sessions");
    await own.restart();
    expect(await nameOf(await issuer.token(username, { jti: "2" }), own.url)).toBe(username);
    await own.printed(/"event":"oidc_account_linked"/);
    const other = await issuer.token(username, { sub: "somebody else" });
    expect(await nameOf(other, own.url)).toBe(`${username}_2`);
  });
});

describe("an issuer that cannot be trusted is not used", () => {
  test.each([
    ["calls itself by another name", { issuer: "https://id.example.com" }],
    ["has its keys where anybody could change them", { jwks_uri: "http://id.example.com/keys" }],
  ])("because it %s", async (_, description) => {
    using lying = new Issuer();
    await lying.rotate();
    lying.description = description;
    await using own = await startServer({ ...environment, PARLEY_OIDC_ISSUER: lying.url });
    expect(await statusOf(await lying.token(freshName()), own.url)).toBe(503);
    await own.printed(/OIDC discovery failed/);
  });
});

describe("signOut", () => {
  test("ends this token at once, with its sockets, and no other", async () => {
    const username = freshName();
    const person = as(username, await issuer.token(username, { jti: "one" }));
    const other = as(username, await issuer.token(username, { jti: "two" }));
    await using socket = await person.connect();
    await using remaining = await other.connect();
    await person.call("signOut");
    expect(await statusOf(person.token)).toBe(401);
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
    expect(await remaining.call("getMe")).toMatchObject(human(username));
    await using again = await RawSocket.open(server.url, `/api/ws?token=${person.token}`);
    expect(again.answer?.status).toBe(401);
  });
});

describe("in the course of time", () => {
  /** Lets time pass until every node gives this answer: each one fetches new keys independently. */
  async function eventually(status: number, token: string, own: TestServer): Promise<void> {
    // Calls go to the nodes in turn.
    const nodes = nodesOf(own.url).length;
    let inARow = 0;
    const areAlike = async () => {
      inARow = (await statusOf(token, own.url)) === status ? inARow + 1 : 0;
      return inARow >= nodes;
    };
    await own.moveClockUntil(areAlike, `every node answers ${status}`);
  }

  test.concurrent("a rotated key is picked up without a restart", async () => {
    using rotating = new Issuer();
    await rotating.rotate();
    await using own = await startServer({ ...environment, PARLEY_OIDC_ISSUER: rotating.url });
    expect(await statusOf(await rotating.token(freshName()), own.url)).toBe(200);
    await rotating.rotate();
    await eventually(200, await rotating.token(freshName()), own);
  });

  test.concurrent("while the issuer is down, only tokens with unknown keys get 503 with retry_after", async () => {
    using failing = new Issuer();
    await failing.rotate();
    await using own = await startServer({ ...environment, PARLEY_OIDC_ISSUER: failing.url });
    const known = await failing.token(freshName());
    // Lets every node fetch the key first.
    for (const _ of nodesOf(own.url)) expect(await statusOf(known, own.url)).toBe(200);
    await failing.goAway();
    await failing.rotate();
    const unknown = await failing.token(freshName());
    await eventually(503, unknown, own);
    const { body, headers } = await post(own.url, "getMe", {}, unknown);
    expect(body).toMatchObject({
      code: "unavailable",
      parameters: { retry_after: expect.any(Number) },
    });
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(await statusOf(known, own.url)).toBe(200);
    await using socket = await RawSocket.open(own.url, `/api/ws?token=${unknown}`);
    expect(socket.answer?.status).toBe(503);
    failing.comeBack();
    await eventually(200, unknown, own);
  });

  test.concurrent("the service starts while the issuer is down, and serves everyone else", async () => {
    using late = new Issuer();
    await late.rotate();
    await late.goAway();
    await using own = await startServer({ ...environment, PARLEY_OIDC_ISSUER: late.url });
    const token = await late.token(freshName());
    expect(await statusOf(token, own.url)).toBe(503);
    const person = await signUp(own.url, "own");
    expect(await person.call("getMe")).toMatchObject(person.account);
    late.comeBack();
    await eventually(200, token, own);
  });

  test.concurrent("the username claim can be configured", async () => {
    await using own = await startServer({
      ...environment,
      PARLEY_OIDC_USERNAME_CLAIM: "nickname",
    });
    const nickname = freshName();
    const token = await issuer.token("not a username", { nickname });
    const { body } = await post(own.url, "getMe", {}, token);
    expect(body).toMatchObject({ ok: true, result: { username: nickname } });
  });
});
