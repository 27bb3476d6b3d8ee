import { afterAll, describe, expect, test } from "bun:test";
import { type Caller, failure, outcome, signUp, transports } from "@parley/testkit/client.ts";
import { answers, fails, thinksThenAnswers } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";

const sharedProvider = await startSharedProvider();
const server = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sharedProvider[Symbol.asyncDispose]();
});

const newKey = () => `key-${Bun.randomUUIDv7()}`;
const WORKS = { works: true, error: null };

describe.each(transports)("testAgentKey over %s", (transport) => {
  async function newcomer() {
    const person = await signUp(server.url, "newcomer");
    return { person, caller: (await person.via(transport)) as Caller };
  }

  test("makes one small call of the agent's model with the stored key", async () => {
    const { person, caller } = await newcomer();
    await using _ = caller;
    for (const [provider, model] of [
      ["claude", "model-a"],
      ["gpt", "model-o"],
    ] as const) {
      const api_key = newKey();
      sharedProvider.respond(api_key, answers("Hi."));
      await person.call("setAgentKey", { provider, api_key });
      expect(await caller.call("testAgentKey", { provider })).toEqual({
        ...WORKS,
        model,
        sandbox: false,
      });
      const calls = sharedProvider.calls(api_key);
      expect(calls).toHaveLength(1);
      const { max_tokens, max_completion_tokens } = calls[0]?.body ?? {};
      expect(Number(max_tokens ?? max_completion_tokens)).toBeLessThan(100);
    }
    await person.call("setAgentProfile", { provider: "claude", model: "model-x" });
    expect(await caller.call("testAgentKey", { provider: "claude" })).toEqual({
      ...WORKS,
      model: "model-x",
      sandbox: false,
    });
  });

  test("tests a given key without storing it", async () => {
    const { person, caller } = await newcomer();
    await using _ = caller;
    const api_key = newKey();
    sharedProvider.respond(api_key, answers("Hi."));
    expect(await caller.call("testAgentKey", { provider: "claude", api_key })).toMatchObject(WORKS);
    const { items } = await person.call("getMyAgents");
    expect(items.map(({ key_configured }) => key_configured)).toEqual([false, false]);
    expect(await caller.call("testAgentKey", { provider: "claude" })).toMatchObject({
      works: false,
      error: { code: "key_missing" },
    });
  });

  test("reports why a key does not work after one attempt, without the provider's text", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    const cases = [
      [401, "key_rejected"],
      [403, "key_rejected"],
      [429, "provider_rate_limited"],
      [402, "provider_refused"],
      [404, "provider_refused"],
      [500, "provider_unavailable"],
    ] as const;
    for (const [status, code] of cases) {
      const api_key = newKey();
      sharedProvider.respond(api_key, fails(status, { message: `raw words about ${api_key}` }));
      const result = await caller.call("testAgentKey", { provider: "claude", api_key });
      expect(result).toMatchObject({ works: false, error: { code } });
      expect(JSON.stringify(result)).not.toContain("raw words");
      expect(JSON.stringify(result)).not.toContain(api_key);
      expect(sharedProvider.calls(api_key)).toHaveLength(1);
    }
  });

  test("accepts a model that uses all its tokens for thinking", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    const api_key = newKey();
    sharedProvider.respond(api_key, thinksThenAnswers(3, ""));
    expect(await caller.call("testAgentKey", { provider: "gpt", api_key })).toMatchObject(WORKS);
  });

  test("tests sandbox keys without a request to the provider", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    const before = sharedProvider.requests.length;
    for (const provider of ["claude", "gpt"]) {
      const tested = await caller.call("testAgentKey", { provider, api_key: "sandbox-1" });
      expect(tested).toMatchObject({ ...WORKS, sandbox: true });
    }
    expect(sharedProvider.requests.length).toBe(before);
  });

  test("rejects unknown providers and keys that no header can carry", async () => {
    const { caller } = await newcomer();
    await using _ = caller;
    const wrong = [
      [{ provider: "nobody" }, "provider"],
      [{ provider: "nobody", api_key: "key-0123456789" }, "provider"],
      [{ api_key: "key-0123456789" }, "provider"],
      [{ provider: "claude", api_key: "" }, "api_key"],
      [{ provider: "claude", api_key: "two words" }, "api_key"],
    ] as const;
    for (const [input, field] of wrong) {
      const { code, parameters } = await failure(caller.call("testAgentKey", input as never));
      expect(code).toBe("bad_request");
      expect(Object.keys(parameters?.fields ?? {})).toEqual([field]);
    }
  });
});

test("an account can test keys ten times a minute, independent of other rates", async () => {
  const test = { provider: "claude", api_key: "sandbox" };
  const curious = await signUp(server.url, "curious");
  await using socket = await curious.connect();
  const codes = await Promise.all(
    Array.from({ length: 12 }, () => outcome(socket.call("testAgentKey", test))),
  );
  expect(codes.toSorted()).toEqual([...Array(10).fill("ok"), ...Array(2).fill("rate_limited")]);
  const other = await signUp(server.url, "other");
  expect(await outcome(other.call("testAgentKey", test))).toBe("ok");
});

test("a sandbox key does not work if the sandbox is off", async () => {
  await using strict = await startServer({ ...noRates, PARLEY_SANDBOX: "off" });
  const person = await signUp(strict.url);
  const tested = await person.call("testAgentKey", { provider: "claude", api_key: "sandbox-1" });
  expect(tested).toMatchObject({ works: false, error: { code: "key_rejected" } });
});

test("a tested key does not appear in the log", async () => {
  const person = await signUp(server.url);
  const api_key = newKey();
  sharedProvider.respond(api_key, fails(500, { message: api_key }));
  await person.call("testAgentKey", { provider: "claude", api_key });
  expect(server.output()).not.toContain(api_key);
});
