import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  groupOf,
  type Person,
  people,
  type Socket,
  say,
  signUp,
} from "@parley/testkit/client.ts";
import { answers, fails, spendsAll } from "@parley/testkit/provider-responders.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";

const sharedProvider = await startSharedProvider();
const folder = mkdtempSync(join(tmpdir(), "parley-operator-keys-"));

/** A provider with a key of the operator's, and that key. */
function provided(name: string, more: object = {}) {
  const key = `${name}-${Bun.randomUUIDv7()}`;
  const api_key_file = join(folder, name);
  writeFileSync(api_key_file, `${key}\n`);
  const provider = {
    display_name: name,
    protocol: "anthropic",
    base_url: sharedProvider.url,
    model: "model-a",
    max_output_tokens: 1000,
    api_key_file,
    ...more,
  };
  return { key, provider };
}

const DAILY_TOKENS = 3000;
const house = provided("house", { instructions: "You work for the shop." });
const capped = provided("capped", { daily_tokens_per_user: DAILY_TOKENS });
const broken = provided("broken");
const { api_key_file: _, ...unpaid } = house.provider;

const server = await startServer({
  ...noRates,
  PARLEY_PROVIDERS: JSON.stringify({
    house: house.provider,
    capped: capped.provider,
    broken: broken.provider,
    plain: { ...unpaid, instructions: undefined },
  }),
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sharedProvider[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

sharedProvider.respond(house.key, answers("Hello."));
sharedProvider.respond(capped.key, spendsAll);
sharedProvider.respond(broken.key, fails(401));

const newKey = () => `own-${Bun.randomUUIDv7()}`;

async function ask(socket: Socket, person: Person, provider: string): Promise<Message> {
  const chat = await groupOf(person, { username: agentOf(person, provider) });
  const trigger = await say(person, chat, `@${agentOf(person, provider)} hello`);
  return answerTo(socket, trigger);
}

const profile = async (person: Person, provider: string) =>
  (await person.call("getMyAgents")).items.find((agent) => agent.provider === provider);

describe("an agent paid by the operator", () => {
  test("answers people who have stored no key", async () => {
    const ann = await signUp(server.url, "ann");
    await using socket = await ann.connect();
    expect(await ask(socket, ann, "house")).toMatchObject({
      content: "Hello.",
      turn: { status: "complete", model: "model-a" },
    });
    expect(await profile(ann, "house")).toMatchObject({
      key_configured: false,
      key_tail: null,
      key_source: "operator",
    });
    expect(await profile(ann, "plain")).toMatchObject({ key_configured: false, key_source: null });
    expect((await ask(socket, ann, "plain")).turn?.error?.code).toBe("key_missing");
  });

  test("uses the owner's key instead, while there is one", async () => {
    const ann = await signUp(server.url, "ann");
    await using socket = await ann.connect();
    const api_key = newKey();
    sharedProvider.respond(api_key, answers("With my key."));
    await ann.call("setAgentKey", { provider: "house", api_key });
    expect(await profile(ann, "house")).toMatchObject({ key_configured: true, key_source: "own" });
    expect((await ask(socket, ann, "house")).content).toBe("With my key.");
    await ann.call("removeAgentKey", { provider: "house" });
    expect(await profile(ann, "house")).toMatchObject({ key_source: "operator" });
    expect((await ask(socket, ann, "house")).content).toBe("Hello.");
  });

  test("asks the operator's model; the owner's choice is for the owner's key", async () => {
    const ann = await signUp(server.url, "ann");
    await using socket = await ann.connect();
    const changed = { provider: "house", model: "model-x" };
    expect(await ann.call("setAgentProfile", changed)).toMatchObject({ model: "model-a" });
    const answer = await ask(socket, ann, "house");
    expect(answer.turn?.model).toBe("model-a");
    expect(sharedProvider.calls(house.key).map(({ body }) => body.model)).not.toContain("model-x");
    const api_key = newKey();
    sharedProvider.respond(api_key, answers("Yes."));
    await ann.call("setAgentKey", { provider: "house", api_key });
    expect(await profile(ann, "house")).toMatchObject({ model: "model-x" });
    expect((await ask(socket, ann, "house")).turn?.model).toBe("model-x");
  });

  test("is told the operator's instructions before the owner's", async () => {
    const ann = await signUp(server.url, "ann");
    await using socket = await ann.connect();
    const instructions = "Rhyme, always.";
    await ann.call("setAgentProfile", { provider: "house", instructions });
    await ask(socket, ann, "house");
    const system = JSON.stringify(sharedProvider.calls(house.key).at(-1)?.body.system);
    expect(system.indexOf("You work for the shop.")).toBeGreaterThan(0);
    expect(system.indexOf(instructions)).toBeGreaterThan(system.indexOf("You work for the shop."));
    expect(await profile(ann, "house")).toMatchObject({ instructions });
  });

  test("says so when the provider rejects the operator's key", async () => {
    const ann = await signUp(server.url, "ann");
    await using socket = await ann.connect();
    expect((await ask(socket, ann, "broken")).turn?.error).toEqual({
      code: "key_rejected",
      message:
        "The provider rejected this server's API key. Ask the operator to replace it, or store a key of your own.",
      parameters: { reason: "operator_key" },
    });
  });
});

describe("testAgentKey without a stored key", () => {
  test("tests the operator's", async () => {
    const ann = await signUp(server.url, "ann");
    expect(await ann.call("testAgentKey", { provider: "house" })).toEqual({
      works: true,
      error: null,
      model: "model-a",
      sandbox: false,
    });
    const failed = await ann.call("testAgentKey", { provider: "broken" });
    expect(failed).toMatchObject({ works: false, error: { code: "key_rejected" } });
    expect(failed.error?.message).toContain("Ask the operator");
  });
});

describe("daily_tokens_per_user", () => {
  /** Asks in many conversations at the same time. */
  async function askAtOnce(socket: Socket, person: Person, times: number): Promise<Message[]> {
    return Promise.all(Array.from({ length: times }, () => ask(socket, person, "capped")));
  }

  test("limits what a person may use at the operator's expense, under concurrent turns", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    await using socket = await ann.connect();
    const answered = await askAtOnce(socket, ann, 8);
    const refused = answered.filter(({ turn }) => turn?.status === "failed");
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(8);
    for (const { turn, content } of refused) {
      expect(turn?.error).toMatchObject({
        code: "budget_exceeded",
        message: content,
        parameters: {
          limit: "operator_daily_tokens",
          changed_by: "operator",
          max: DAILY_TOKENS,
          retry_at: expect.stringMatching(/T00:00:00\.000Z$/),
        },
      });
      expect(content).toBe(
        `This agent's budget of ${DAILY_TOKENS} tokens a day, which this server pays for, is used up until midnight UTC. Its owner can store an API key of their own.`,
      );
    }
    const { items } = await ann.call("getAgentUsage");
    const used = items.reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0);
    expect(used).toBeLessThanOrEqual(DAILY_TOKENS);
    await using other = await bob.connect();
    expect((await ask(other, bob, "capped")).turn?.status).toBe("complete");
  });

  test("is not extended by keys that are removed while they pay for an answer", async () => {
    const ann = await signUp(server.url, "ann");
    await using socket = await ann.connect();
    for (let asked = 0; asked < 4; asked++) {
      const api_key = newKey();
      await ann.call("setAgentKey", { provider: "capped", api_key });
      const answer = ask(socket, ann, "capped");
      const first = await sharedProvider.nextCall(api_key);
      await ann.call("removeAgentKey", { provider: "capped" });
      sharedProvider.respond(api_key, answers("It is late."));
      await first.callTools({ name: "current_time", input: {} });
      expect((await answer).turn?.status).toBe("complete");
    }
    let used = 0;
    for (let answer = await ask(socket, ann, "capped"); answer.turn?.status === "complete"; ) {
      const { input_tokens = 0, output_tokens = 0 } = answer.turn.usage ?? {};
      used += input_tokens + output_tokens;
      answer = await ask(socket, ann, "capped");
    }
    expect(used).toBeLessThanOrEqual(DAILY_TOKENS);
  });

  test("does not concern the owner's own key", async () => {
    const ann = await signUp(server.url, "ann");
    await using socket = await ann.connect();
    const api_key = newKey();
    sharedProvider.respond(api_key, spendsAll);
    await ann.call("setAgentKey", { provider: "capped", api_key });
    const statuses = (await askAtOnce(socket, ann, 5)).map(({ turn }) => turn?.status);
    expect(statuses).toEqual(Array(5).fill("complete"));
    await ann.call("removeAgentKey", { provider: "capped" });
    expect((await ask(socket, ann, "capped")).turn?.status).toBe("complete");
    // Each turn reserves more than it uses, so some that run one after another fit.
    for (let asked = 0; asked < 5; asked++) await ask(socket, ann, "capped");
    expect((await ask(socket, ann, "capped")).turn?.error?.code).toBe("budget_exceeded");
    await ann.call("setAgentKey", { provider: "capped", api_key });
    expect((await ask(socket, ann, "capped")).turn?.status).toBe("complete");
  });
});
