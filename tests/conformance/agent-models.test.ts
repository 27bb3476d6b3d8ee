import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentOf, failure, outcome, signUp, transports } from "@parley/testkit/client.ts";
import { fails } from "@parley/testkit/provider-responders.ts";
import { listsModels, providersAt, startProvider } from "@parley/testkit/provider-server.ts";
import { noRates, onSeveralNodes, startServer } from "@parley/testkit/server.ts";

const provider = await startProvider(fails(500));
const folder = mkdtempSync(join(tmpdir(), "parley-models-"));
const api_key_file = join(folder, "key");
writeFileSync(api_key_file, "operators-key-0123456789\n");
const offered = JSON.parse(providersAt(provider.url).PARLEY_PROVIDERS);
const server = await startServer({
  ...noRates,
  PARLEY_PROVIDERS: JSON.stringify({ ...offered, house: { ...offered.claude, api_key_file } }),
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const newKey = () => `key-${Bun.randomUUIDv7()}`;
const configured = (id: string) => ({
  items: [{ id, display_name: id }],
  from: "configuration" as const,
});

/** A new person with a key of their own for both providers. */
async function owner() {
  const person = await signUp(server.url, "owner");
  const api_key = newKey();
  for (const each of ["claude", "gpt"]) {
    await person.call("setAgentKey", { provider: each, api_key });
  }
  const calls = () =>
    provider.listRequests.filter(({ headers }) => JSON.stringify(headers).includes(api_key));
  return { person, api_key, calls };
}

describe.each(transports)("getAgentModels over %s", (transport) => {
  test("lists what the provider lists for the owner's key, newest first", async () => {
    provider.respondToLists(listsModels("newest", "middle", "oldest"));
    const { person, api_key, calls } = await owner();
    await using caller = await person.via(transport);
    expect(await caller.call("getAgentModels", { provider: "claude" })).toEqual({
      items: ["newest", "middle", "oldest"].map((id) => ({ id, display_name: `The ${id}` })),
      from: "provider",
    });
    expect(await caller.call("getAgentModels", { provider: "gpt" })).toEqual({
      items: ["newest", "middle", "oldest"].map((id) => ({ id, display_name: id })),
      from: "provider",
    });
    const [anthropic, openai] = calls();
    expect(anthropic).toMatchObject({
      method: "GET",
      path: "/v1/models?limit=1000",
      headers: { "x-api-key": api_key, "anthropic-version": "2023-06-01" },
    });
    expect(openai).toMatchObject({
      method: "GET",
      path: "/v1/models",
      headers: { authorization: `Bearer ${api_key}` },
    });
  });

  test("keeps a list for all agents of the provider until the key changes", async () => {
    provider.respondToLists(listsModels("model-1"));
    const { person, calls } = await owner();
    await using caller = await person.via(transport);
    const { username } = await caller.call("createAgent", {
      name: "research",
      kind: "model",
      provider: "claude",
    });
    const list = () => caller.call("getAgentModels", { agent_username: username });
    await caller.call("getAgentModels", { provider: "claude" });
    expect((await list()).items).toHaveLength(1);
    // Each node keeps lists of its own.
    expect(calls().length).toBeLessThanOrEqual(onSeveralNodes ? 2 : 1);
    provider.respondToLists(listsModels("model-1", "model-2"));
    await caller.call("setAgentKey", { provider: "claude", api_key: newKey() });
    expect((await list()).items).toHaveLength(2);
  });

  test("has the configured model without a key, and with the operator's", async () => {
    const person = await signUp(server.url, "owner");
    await using caller = await person.via(transport);
    const before = provider.listRequests.length;
    await caller.call("setAgentProfile", { provider: "claude", model: "model-x" });
    for (const each of ["claude", "house"]) {
      expect(await caller.call("getAgentModels", { provider: each })).toEqual(
        configured("model-a"),
      );
    }
    expect(provider.listRequests).toHaveLength(before);
  });

  test("lists the sandbox's model for a sandbox key", async () => {
    const { person } = await owner();
    await using caller = await person.via(transport);
    for (const each of ["claude", "gpt"]) {
      await caller.call("setAgentKey", { provider: each, api_key: "sandbox-0123456789" });
      expect(await caller.call("getAgentModels", { provider: each })).toEqual({
        items: [{ id: "sandbox", display_name: "Sandbox" }],
        from: "provider",
      });
    }
  });

  test("is refused for external agents, agents of others and unknown ones", async () => {
    const { person } = await owner();
    await using caller = await person.via(transport);
    const { username } = await caller.call("createAgent", { name: "program", kind: "external" });
    const models = (agent_username: string) => caller.call("getAgentModels", { agent_username });
    expect((await failure(models(username))).parameters?.fields).toHaveProperty("agent_username");
    const other = await signUp(server.url, "other");
    expect((await failure(models(agentOf(other)))).code).toBe("forbidden");
    expect((await failure(models(`${person.username}:nobody`))).code).toBe("not_found");
  });
});

const wrong: Record<string, Parameters<typeof provider.respondToLists>[0]> = {
  "rejects the key": fails(401),
  "has no such address": fails(404),
  fails: fails(500),
  "breaks the connection": ({ cut }) => cut(),
  "sends no JSON": body("<html>"),
  "sends another shape": body('{"data":{"id":"x"}}'),
  "sends names that no agent can have": body(
    JSON.stringify({
      data: [{ id: "" }, { id: 5 }, { id: "a\nb" }, { id: "x".repeat(200) }, null],
    }),
  ),
  "sends far too much": async ({ head, write }) => {
    await head(200);
    for (let sent = 0; sent < 64; sent++) await write(" ".repeat(65_536));
  },
};

test.each(Object.entries(wrong))(
  "the configured model is listed if the provider %s",
  async (_, answer) => {
    provider.respondToLists(answer);
    const { person } = await owner();
    expect(await person.call("getAgentModels", { provider: "gpt" })).toEqual(configured("model-o"));
    expect(server.output()).not.toContain("internal error");
  },
);

// Nodes tell each other of calls after a moment: all of these may be over by then.
test.skipIf(onSeveralNodes)("asking the provider is limited like key tests", async () => {
  provider.respondToLists(fails(500));
  const { person } = await owner();
  const ask = () => outcome(person.call("getAgentModels", { provider: "gpt" }));
  expect(await ask()).toBe("ok");
  // At once: every six seconds, another call is allowed.
  expect(await Promise.all(Array.from({ length: 11 }, ask))).toContain("rate_limited");
});

/** Answers with this body. */
function body(text: string): Parameters<typeof provider.respondToLists>[0] {
  return async ({ head, write, end }) => {
    await head(200, { "content-type": "application/json" });
    await write(text);
    await end();
  };
}
