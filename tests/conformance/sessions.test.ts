import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  answer,
  checkedResult,
  failure,
  Person,
  people,
  post,
  signUp,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { noRates, onSeveralNodes, spawnMain, startServer } from "@parley/testkit/server.ts";

const server = await startServer({ ...noRates, ...serviceKeySetting() });
const [alice, bob] = await people(server.url, "alice", "bob");
afterAll(() => server[Symbol.asyncDispose]());

const PASSWORD = "correct horse battery";
const DAY_MS = 24 * 60 * 60 * 1000;

let count = 0;
const freshName = () => `fresh_${process.pid}_${++count}`;

/** Signs in again: another session of the same account. */
async function again({ username }: Person): Promise<Person> {
  const { body } = await post(server.url, "signIn", { username, password: PASSWORD });
  if (!body.ok) throw new Error(body.description);
  const { access_token, account } = checkedResult("signIn", body.result);
  return new Person(server.url, access_token, account);
}

describe.each(transports)("signUp over %s", (transport) => {
  test("creates an account and a token that is valid for 30 days", async () => {
    await using caller = await alice.via(transport);
    const username = freshName();
    const made = await caller.call("signUp", { username, password: PASSWORD });
    expect(made).toEqual({
      access_token: expect.stringMatching(/^ply_[A-Za-z0-9_-]{43}$/),
      expires_at: expect.stringMatching(TIMESTAMP),
      account: { username, kind: "human", display_name: username, version: 0 },
      device: expect.any(String),
    });
    const days = (Date.parse(made.expires_at) - Date.now()) / DAY_MS;
    expect(Math.round(days)).toBe(30);
    const { body } = await post(server.url, "getMe", {}, made.access_token);
    expect(body).toMatchObject({ ok: true, result: made.account });
  });

  test("lowercases the username and keeps the display name", async () => {
    await using caller = await alice.via(transport);
    const username = freshName();
    const { account } = await caller.call("signUp", {
      username: username.toUpperCase(),
      password: PASSWORD,
      display_name: "Ada Lovelace 🧮",
    });
    expect(account).toEqual({
      username,
      kind: "human",
      display_name: "Ada Lovelace 🧮",
      version: 0,
    });
  });

  test("creates the account's agents, one for each provider", async () => {
    await using caller = await alice.via(transport);
    const username = freshName();
    await caller.call("signUp", { username, password: PASSWORD });
    for (const provider of ["claude", "gpt"]) {
      const agent = await caller.call("getUser", { username: `${username}:${provider}` });
      expect(agent).toMatchObject({ username: `${username}:${provider}`, kind: "agent" });
    }
  });

  test("is 409 if the username is taken, in any case", async () => {
    await using caller = await alice.via(transport);
    for (const username of [bob.username, bob.username.toUpperCase()]) {
      const failed = await failure(caller.call("signUp", { username, password: PASSWORD }));
      expect(failed.code).toBe("conflict");
    }
  });

  test("gives a username to one of two concurrent calls", async () => {
    await using caller = await alice.via(transport);
    const input = { username: freshName(), password: PASSWORD };
    const asked = await Promise.allSettled([
      caller.call("signUp", input),
      caller.call("signUp", input),
    ]);
    expect(asked.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const refused = asked.find((each) => each.status === "rejected");
    expect(refused?.reason).toMatchObject({ code: "conflict" });
  });

  test.each([
    ["username", "of one character", "a"],
    ["username", "of 33 characters", "a".repeat(33)],
    ["username", "with a space", "with space"],
    ["username", "with a dash", "with-dash"],
    ["username", "of an agent", "owner:claude"],
    ["username", "with another letter", "émile"],
    ["username", "of nothing", ""],
    ["password", "of 7 characters", "7 chars"],
    ["password", "of 1,025 characters", "x".repeat(1025)],
    ["display_name", "of nothing", ""],
    ["display_name", "of white space", "  "],
    ["display_name", "of 65 characters", "x".repeat(65)],
    ["display_name", "of two lines", "two\nlines"],
    ["display_name", "of invisible characters", "\u200b\u202e\u3164"],
    ["display_name", "of the service's staff", "Administrator"],
    ["username", "that is reserved", "Support"],
    ["password", "that is among the most common", "Password123"],
    ["password", "of one pattern", "abcabcabcabc"],
  ])("refuses a %s %s", async (field, _, value) => {
    await using caller = await alice.via(transport);
    const input = { username: freshName(), password: PASSWORD, [field]: value };
    const failed = await failure(caller.call("signUp", input));
    expect(failed.code).toBe("bad_request");
    expect(Object.keys(failed.parameters?.fields ?? {})).toEqual([field]);
  });

  test("removes invisible and direction-changing characters from a display name", async () => {
    await using caller = await alice.via(transport);
    const display_name = " Ada\u202e\u200b\u2066 Lovelace\ufeff ";
    const { account } = await caller.call("signUp", {
      username: freshName(),
      password: PASSWORD,
      display_name,
    });
    expect(account.display_name).toBe("Ada Lovelace");
  });

  test("refuses the username as the password", async () => {
    await using caller = await alice.via(transport);
    const username = freshName();
    const failed = await failure(caller.call("signUp", { username, password: username }));
    expect(failed.parameters?.fields).toHaveProperty("password");
  });

  test("accepts the longest and the shortest passwords and names", async () => {
    await using caller = await alice.via(transport);
    const username = freshName().padEnd(32, "x");
    const password = "🔑".repeat(1024);
    const display_name = "🙂".repeat(64);
    const made = await caller.call("signUp", { username, password, display_name });
    expect(made.account.display_name).toBe(display_name);
    const { access_token } = await caller.call("signIn", { username, password });
    expect(access_token).not.toBe(made.access_token);
    await caller.call("signUp", { username: freshName(), password: "8 chars.", display_name: "x" });
  });
});

test("a long display name with emoji is truncated between characters for the agents", async () => {
  const username = freshName();
  const display_name = `${"x".repeat(63)}😀`;
  const { body } = await post(server.url, "signUp", { username, password: PASSWORD, display_name });
  expect(body.ok).toBe(true);
  const agent = await alice.call("getUser", { username: `${username}:claude` });
  expect(agent.display_name.isWellFormed()).toBe(true);
  expect(agent.display_name).not.toContain("\ufffd");
});

describe("sign-up by policy", () => {
  const tryWith = async (url: string, invite_code?: string, username = freshName()) => {
    const input = {
      username,
      password: PASSWORD,
      ...(invite_code && { invite_code }),
    };
    return (await post(url, "signUp", input)).status;
  };

  test("is forbidden if it is closed", async () => {
    await using closed = await startServer({ PARLEY_SIGNUP: "closed" });
    expect(await tryWith(closed.url)).toBe(403);
    expect(await tryWith(closed.url, "please")).toBe(403);
  });

  test("needs one of the codes if it is by invitation", async () => {
    await using invited = await startServer({ PARLEY_SIGNUP: "invite:spring,summer" });
    expect(await tryWith(invited.url)).toBe(403);
    expect(await tryWith(invited.url, "autumn")).toBe(403);
    expect(await tryWith(invited.url, "spring,summer")).toBe(403);
    expect(await tryWith(invited.url, "spring")).toBe(200);
    expect(await tryWith(invited.url, "summer")).toBe(200);
  });

  test("gives nobody the name of an operator who does not exist, whatever the code", async () => {
    await using invited = await startServer({
      PARLEY_SIGNUP: "invite:spring",
      PARLEY_OPERATORS: "olga",
    });
    expect(await tryWith(invited.url, "spring", "olga")).toBe(409);
  });
});

describe.each(transports)("signIn over %s", (transport) => {
  test("returns another token for the same account, whatever the case of the username", async () => {
    await using caller = await alice.via(transport);
    const username = bob.username.toUpperCase();
    const signedIn = await caller.call("signIn", { username, password: PASSWORD });
    expect(signedIn.account).toEqual(bob.account);
    expect(signedIn.access_token).toMatch(/^ply_/);
    expect(signedIn.access_token).not.toBe(bob.token);
    const { status } = await post(server.url, "getMe", {}, bob.token);
    expect(status).toBe(200);
  });

  test("is 401 with the same message for a wrong password, an unknown user and an agent", async () => {
    await using caller = await alice.via(transport);
    const attempt = (username: string) =>
      failure(caller.call("signIn", { username, password: "wrong password" }));
    const wrong = await attempt(bob.username);
    expect(wrong.code).toBe("unauthorized");
    for (const username of [freshName(), `${bob.username}:claude`]) {
      const { code, message } = await attempt(username);
      expect({ code, message }).toEqual({ code: "unauthorized", message: wrong.message });
    }
  });

  test("throttles repeated failures for a username, and no other", async () => {
    const victim = await signUp(server.url, "victim");
    await using caller = await alice.via(transport);
    const attempt = () =>
      failure(caller.call("signIn", { username: victim.username, password: "wrong password" }));
    let failed = await attempt();
    for (let tries = 1; failed.code === "unauthorized" && tries < 20; tries++) {
      failed = await attempt();
    }
    expect(failed.code).toBe("rate_limited");
    expect(failed.parameters?.retry_after).toBeGreaterThanOrEqual(1);
    const other = { username: bob.username, password: PASSWORD };
    expect((await caller.call("signIn", other)).account).toEqual(bob.account);
  });
});

test("concurrent guesses for one username are throttled too", async () => {
  const victim = await signUp(server.url, "victim");
  const guess = () =>
    post(server.url, "signIn", { username: victim.username, password: "wrong password" });
  const answers = await Promise.all(Array.from({ length: 30 }, guess));
  expect(answers.map(({ status }) => status)).toContain(429);
});

test("repeated failures from one address are throttled, whatever the usernames", async () => {
  await using attacked = await startServer();
  let last = 401;
  for (let tries = 0; last === 401 && tries < 300; tries += 10) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () =>
        post(attacked.url, "signIn", { username: freshName(), password: "wrong password" }),
      ),
    );
    last = answers.at(-1)?.status ?? 0;
  }
  expect(last).toBe(429);
});

describe.each(transports)("changePassword over %s", (transport) => {
  const new_password = "battery staple";

  test("replaces the password, and ends every session but the caller's", async () => {
    const person = await signUp(server.url, "changing");
    const { username } = person;
    const other = await again(person);
    await using caller = await person.via(transport);
    await using socket = await other.connect();
    await caller.call("changePassword", { current_password: PASSWORD, new_password });
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
    expect((await failure(other.call("getMe"))).status).toBe(401);
    expect(await caller.call("getMe")).toMatchObject(person.account);
    const enter = (password: string) => post(server.url, "signIn", { username, password });
    expect((await enter(PASSWORD)).status).toBe(401);
    expect((await enter(new_password)).status).toBe(200);
  });

  test("is 403 for a wrong current password, throttled after some attempts, and changes nothing", async () => {
    const person = await signUp(server.url, "guessed");
    await using caller = await person.via(transport);
    const guess = () =>
      failure(caller.call("changePassword", { current_password: "wrong", new_password }));
    let failed = await guess();
    expect(failed.code).toBe("forbidden");
    for (let tries = 0; failed.code === "forbidden" && tries < 30; tries++) failed = await guess();
    expect(failed.code).toBe("rate_limited");
    expect(await caller.call("getMe")).toMatchObject(person.account);
  });

  test("is 403 for an account without a password, which guessing does not throttle", async () => {
    const backend = new Backend(server.url);
    const external_id = `no password ${transport}`;
    await backend.call("upsertUsers", { users: [{ external_id }] });
    const { access_token, account } = await backend.call("issueToken", { external_id });
    const person = new Person(server.url, access_token, account);
    await using caller = await person.via(transport);
    const input = { current_password: PASSWORD, new_password };
    for (let tries = 0; tries < 10; tries++) {
      expect(await failure(caller.call("changePassword", input))).toMatchObject({
        code: "forbidden",
        message: expect.stringContaining("this account has no password"),
      });
    }
  });

  test.each(["short", "Password1"])("is 400 for %s as a new password", async (new_password) => {
    await using caller = await alice.via(transport);
    const input = { current_password: PASSWORD, new_password };
    const { parameters } = await failure(caller.call("changePassword", input));
    expect(parameters?.fields).toHaveProperty("new_password");
    expect(await again(alice)).toBeDefined();
  });
});

describe("signOut", () => {
  test.each(transports)(
    "over %s ends the token at once, and its sockets with 4401",
    async (transport) => {
      const [here, elsewhere] = await Promise.all([again(alice), again(alice)]);
      await using caller = await here.via(transport);
      await using socket = await here.connect();
      await using other = await elsewhere.connect();
      await caller.call("signOut");
      expect((await post(server.url, "getMe", {}, here.token)).status).toBe(401);
      await socket.until(() => socket.closed, "close");
      expect(socket.closed?.code).toBe(4401);
      await expect(here.connect()).rejects.toThrow();
      expect(await other.call("getMe")).toMatchObject(alice.account);
      expect(await elsewhere.call("getMe")).toMatchObject(alice.account);
    },
  );

  test("over the socket gets its reply before that socket closes with 4401", async () => {
    const here = await again(alice);
    await using socket = await here.connect();
    expect(await socket.reply("auth.logout")).toMatchObject({ ok: true });
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
  });
});

describe.each(transports)("getSessions over %s", (transport) => {
  test("lists the caller's sessions, and says which is the current one", async () => {
    const owner = await signUp(server.url, "owner");
    const second = await again(owner);
    await using caller = await owner.via(transport);
    const { items } = await caller.call("getSessions");
    expect(items).toHaveLength(2);
    expect(items.filter(({ current }) => current)).toHaveLength(1);
    for (const session of items) {
      expect(session.created_at).toMatch(TIMESTAMP);
      expect(session.last_used_at).toMatch(TIMESTAMP);
      expect(session.user_agent).toContain("Bun");
    }
    const mine = items.find(({ current }) => current)?.id;
    const theirs = (await second.call("getSessions")).items;
    expect(theirs.find(({ current }) => current)?.id).not.toBe(mine);
    expect(theirs.map(({ id }) => id).toSorted()).toEqual(items.map(({ id }) => id).toSorted());
  });

  test("truncates a user agent, and keeps it on one line", async () => {
    const owner = await signUp(server.url, "owner");
    const { username } = owner;
    const response = await fetch(`${server.url}/api/signIn`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": `Phone\u0085${"x".repeat(4000)}`,
      },
      body: JSON.stringify({ username, password: PASSWORD }),
    });
    expect((await answer(response)).status).toBe(200);
    await using caller = await owner.via(transport);
    const agents = (await caller.call("getSessions")).items.map(({ user_agent }) => user_agent);
    expect(agents).toContain(`Phone ${"x".repeat(250)}`);
  });

  test("shows the user agent that signed in, and no token", async () => {
    const owner = await signUp(server.url, "owner");
    const { username } = owner;
    const response = await fetch(`${server.url}/api/signIn`, {
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": "Phone/1.0" },
      body: JSON.stringify({ username, password: PASSWORD }),
    });
    expect((await answer(response)).status).toBe(200);
    await using caller = await owner.via(transport);
    const { items } = await caller.call("getSessions");
    expect(items.map(({ user_agent }) => user_agent)).toContain("Phone/1.0");
    expect(JSON.stringify(items)).not.toContain("ply_");
  });
});

describe.each(transports)("revokeSession over %s", (transport) => {
  const idOf = async (person: Person) =>
    (await person.call("getSessions")).items.find(({ current }) => current)?.id as string;

  test("ends another session and its sockets with 4401", async () => {
    const lost = await again(alice);
    await using socket = await lost.connect();
    await using caller = await alice.via(transport);
    await caller.call("revokeSession", { session_id: await idOf(lost) });
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(4401);
    expect((await failure(lost.call("getMe"))).status).toBe(401);
    const { items } = await caller.call("getSessions");
    expect(items.some(({ current }) => current)).toBe(true);
  });

  test("is 404 for a session that is unknown, has ended, or belongs to another account", async () => {
    const gone = await again(alice);
    const ended = await idOf(gone);
    await gone.call("signOut");
    await using caller = await alice.via(transport);
    for (const session_id of [Bun.randomUUIDv7(), ended, await idOf(bob)]) {
      expect((await failure(caller.call("revokeSession", { session_id }))).code).toBe("not_found");
    }
    expect(await bob.call("getMe")).toMatchObject(bob.account);
  });
});

describe.skipIf(onSeveralNodes)("the command password reset", () => {
  async function reset(dataDir: string, username: string) {
    const child = spawnMain({ PARLEY_DATA: dataDir }, ["password", "reset", username]);
    const [out, problems] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { out, problems, code: await child.exited };
  }

  test("sets a new password while the server runs, and ends the person's sessions", async () => {
    const person = await signUp(server.url, "forgetful");
    const { username } = person;
    const { out, code } = await reset(server.dataDir, username);
    expect(code).toBe(0);
    const [, password] = /^The password of \w+ is now (\S{16})\n$/.exec(out) ?? [];
    expect((await failure(person.call("getMe"))).status).toBe(401);
    expect((await post(server.url, "signIn", { username, password })).status).toBe(200);
  });

  test.each(["nobody_here", "alice:claude"])(
    "fails for %s, which is not a person",
    async (name) => {
      const { code, problems } = await reset(server.dataDir, name);
      expect(code).toBe(1);
      expect(problems).toStartWith(`There is no person named ${name}.`);
    },
  );
});

// Searches the SQLite file, which several nodes do not have.
test.skipIf(onSeveralNodes)("neither tokens nor passwords are written to disk", async () => {
  await using private_ = await startServer();
  const person = await signUp(private_.url, "secret");
  await private_.stop();
  const files = readdirSync(private_.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  expect(files.length).toBeGreaterThan(0);
  const everything = Buffer.concat(files.map((file) => readFileSync(file)));
  expect(everything.includes(person.username)).toBe(true);
  expect(everything.includes(person.token)).toBe(false);
  expect(everything.includes(person.token.slice(4))).toBe(false);
  expect(everything.includes(PASSWORD)).toBe(false);
});

test("a session survives a restart of the server", async () => {
  await using restarted = await startServer();
  const person = await signUp(restarted.url, "lasting");
  await restarted.stop();
  await restarted.restart();
  const { status } = await post(restarted.url, "getMe", {}, person.token);
  expect(status).toBe(200);
});
