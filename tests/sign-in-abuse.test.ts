import { describe, expect, test } from "bun:test";
import { type Answer, answer, signUp } from "@parley/testkit/client.ts";
import { limits, noRates, SOURCES, startServer, type TestServer } from "@parley/testkit/server.ts";

const PASSWORD = "correct horse battery";
const BEHIND_PROXY = { PARLEY_PROXIES: "1" };

let count = 0;
const freshName = () => `abuse_${process.pid}_${++count}`;

/** Calls with this client address, through a trusted proxy. */
async function postFrom(
  url: string,
  address: string,
  operation: string,
  input: object,
  token?: string,
): Promise<Answer> {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "x-forwarded-for": address,
  };
  if (token) headers.authorization = `Bearer ${token}`;
  const body = JSON.stringify(input);
  return answer(await fetch(`${url}/api/${operation}`, { method: "POST", headers, body }));
}

/** Signs up from an address. Returns a function that signs in from any address. */
async function owner(url: string, address: string) {
  const username = freshName();
  const { body } = await postFrom(url, address, "signUp", { username, password: PASSWORD });
  if (!body.ok) throw new Error(body.description);
  const { device, access_token } = body.result as { device: string; access_token: string };
  const attempt = (from: string, password: string, shown?: string) =>
    postFrom(url, from, "signIn", { username, password, device: shown });
  const enter = async (from: string, password = PASSWORD, shown?: string) =>
    (await attempt(from, password, shown)).status;
  return { username, device, token: access_token, attempt, enter };
}
type Owner = Awaited<ReturnType<typeof owner>>;

/**
 * Guesses passwords from one address until it has to wait for several seconds: the first, shorter
 * waits may be over before the next call on a busy machine. The server's clock moves past these.
 */
async function guess(
  server: TestServer,
  { attempt }: Owner,
  from: string,
  device?: string,
): Promise<void> {
  for (let wait = 0; wait <= 4; ) {
    await server.moveClock(wait * 1000);
    const { body } = await attempt(from, "wrong password", device);
    wait = body.ok ? 0 : (body.parameters?.retry_after ?? 0);
  }
}

describe("during a flood of sign-ups", () => {
  test("people can sign in, even from the address of the flood", async () => {
    // Test servers usually hash passwords too fast for a flood.
    await using server = await startServer(noRates, SOURCES);
    const alice = await signUp(server.url, "alice");
    const saturated = Promise.withResolvers<void>();
    let isOver = false;
    // Some more than can wait.
    const flood = Array.from({ length: 220 }, async () => {
      while (!isOver) {
        const input = { username: freshName(), password: PASSWORD };
        const { status } = await postFrom(server.url, "", "signUp", input);
        if (status === 503) saturated.resolve();
      }
    });
    const ended = Promise.allSettled(flood);
    await saturated.promise;
    const { username } = alice;
    for (let times = 0; times < 2; times++) {
      const entered = await postFrom(server.url, "", "signIn", { username, password: PASSWORD });
      expect(entered.status).toBe(200);
    }
    isOver = true;
    // Hashing the passwords of those who still wait would take ten seconds of CPU time.
    await server.kill();
    await ended;
  });
});

describe("sign-ups per hour", () => {
  test("are limited by address, for IPv6 by /64", async () => {
    await using server = await startServer({ ...BEHIND_PROXY, ...limits({ signups_per_hour: 2 }) });
    const join = (address: string) =>
      postFrom(server.url, address, "signUp", { username: freshName(), password: PASSWORD });
    const mallory = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:2:3:4:5:6"];
    const answers: Answer[] = [];
    for (const address of mallory) answers.push(await join(address));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers[2]?.body).toMatchObject({
      code: "rate_limited",
      parameters: { retry_after: expect.any(Number) },
    });
    expect((await join("2001:db8:1:3::1")).status).toBe(200);
    expect((await join("192.0.2.1")).status).toBe(200);
    expect((await join("::ffff:192.0.2.1")).status).toBe(200);
    expect((await join("::ffff:c000:201")).status).toBe(429);
    const shown = (await (await fetch(`${server.url}/api/limits`)).json()) as object;
    expect(JSON.stringify(shown)).toContain('"signups_per_hour":2');
  });
});

describe("somebody who guesses invite codes", () => {
  test("is throttled, keeps nobody at other addresses from signing up, and can sign up later", async () => {
    const code = "a-code-that-nobody-guesses";
    await using server = await startServer({
      ...BEHIND_PROXY,
      ...noRates,
      PARLEY_SIGNUP: `invite:${code}`,
      PARLEY_LOG: "info",
    });
    const join = (address: string, invite_code?: string) =>
      postFrom(server.url, address, "signUp", {
        username: freshName(),
        password: PASSWORD,
        invite_code,
      });
    const guessed = "a-code-that-somebody-guessed";
    const answers: Answer[] = [];
    while (answers.length < 30 && answers.at(-1)?.status !== 429) {
      answers.push(await join("203.0.113.66", guessed));
    }
    expect(answers.at(-1)?.body).toMatchObject({
      code: "rate_limited",
      parameters: { retry_after: expect.any(Number) },
    });
    const wrong = answers.filter(({ status }) => status === 403).length;
    expect(wrong).toBeGreaterThanOrEqual(10);
    expect((await join("192.0.2.1", code)).status).toBe(200);
    await server.moveClockUntil(
      async () => (await join("203.0.113.66", code)).status === 200,
      "the end of the wait",
    );
    const recorded = server.output().match(/"event":"sign_in_failed".*"reason":"invite_code"/g);
    expect(recorded).toHaveLength(wrong);
    expect(server.output()).not.toContain(guessed);
  });

  test("a sign-up without a code is no guess", async () => {
    await using server = await startServer({
      ...noRates,
      PARLEY_SIGNUP: "invite:long-enough-code",
    });
    for (let tries = 0; tries < 20; tries++) {
      const input = { username: freshName(), password: PASSWORD };
      expect((await postFrom(server.url, "", "signUp", input)).status).toBe(403);
    }
  });
});

describe("somebody who guesses passwords", () => {
  test("is throttled, and locks out nobody at other addresses", async () => {
    await using server = await startServer(BEHIND_PROXY);
    const alice = await owner(server.url, "192.0.2.1");
    await guess(server, alice, "203.0.113.66");
    expect(await alice.enter("203.0.113.66")).toBe(429);
    expect(await alice.enter("192.0.2.1")).toBe(200);
    expect(await alice.enter("198.51.100.7")).toBe(200);
  });

  test("from many addresses causes throttling of unknown addresses, but not of known addresses or devices", async () => {
    await using server = await startServer({ ...BEHIND_PROXY, ...noRates });
    const alice = await owner(server.url, "192.0.2.1");
    const strangers = Array.from({ length: 120 }, (_, n) =>
      alice.enter(`203.0.113.${n}`, "wrong password"),
    );
    await Promise.any(strangers.map(async (status) => expect(await status).toBe(429)));
    expect(await alice.enter("192.0.2.1")).toBe(200);
    expect(await alice.enter("198.51.100.7", PASSWORD, alice.device)).toBe(200);
    await Promise.all(strangers);
  });

  test("from the owner's own address does not lock out the owner's device", async () => {
    await using server = await startServer(BEHIND_PROXY);
    const [alice, mallory] = [
      await owner(server.url, "192.0.2.1"),
      await owner(server.url, "192.0.2.1"),
    ];
    await guess(server, alice, "192.0.2.1");
    expect(await alice.enter("192.0.2.1")).toBe(429);
    expect(await alice.enter("192.0.2.1", PASSWORD, mallory.device)).toBe(429);
    expect(await alice.enter("192.0.2.1", PASSWORD, "v1.made.up")).toBe(429);
    expect(await alice.enter("192.0.2.1", PASSWORD, alice.device)).toBe(200);
    await guess(server, alice, "192.0.2.1", alice.device);
  });

  test("does not prevent the signed-in owner from changing the password", async () => {
    await using server = await startServer(BEHIND_PROXY);
    const alice = await owner(server.url, "192.0.2.1");
    await guess(server, alice, "192.0.2.1");
    const change = { current_password: PASSWORD, new_password: "battery staple horse" };
    const changed = await postFrom(server.url, "192.0.2.1", "changePassword", change, alice.token);
    expect(changed.status).toBe(200);
  });
});
