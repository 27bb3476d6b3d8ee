import { describe, expect, spyOn, test } from "bun:test";
import { actionTokens, type Block, parseMarkup } from "@parley/protocol/markup";
import type { ModelEvent, ModelRequest } from "../src/agents/providers/adapter.ts";
import { type CallOptions, callModel } from "../src/agents/providers/call.ts";
import { adapters, type ProtocolName } from "../src/agents/providers/index.ts";
import { ProviderError } from "../src/agents/providers/provider-errors.ts";
import { makeSandboxFetch, sandboxFetch } from "../src/agents/sandbox/index.ts";
import type { ModelMessage } from "../src/rules/model-content.ts";
import { isSandboxKey } from "../src/rules/sandbox.ts";

const protocols: ProtocolName[] = ["anthropic", "openai"];
const rushed = makeSandboxFetch({ speed: Number.POSITIVE_INFINITY });

const saying = (text: string, changes: Partial<ModelRequest> = {}): ModelRequest => ({
  system: "You are alice:claude. Participants: Alice, Bob Stone.",
  messages: [
    { role: "user", content: [{ type: "text", text: "Alice: fail" }] },
    { role: "assistant", content: [{ type: "text", text: "Never mind." }] },
    { role: "user", content: [{ type: "text", text }] },
  ],
  model: "test-model",
  max_output_tokens: 4096,
  api_key: "sandbox",
  base_url: "https://provider.invalid",
  signal: new AbortController().signal,
  ...changes,
});

async function ask(
  protocol: ProtocolName,
  request: ModelRequest,
  options: CallOptions = { fetch: rushed },
) {
  const events: ModelEvent[] = [];
  let tries = 0;
  let error: unknown;
  try {
    const call = callModel(adapters[protocol], request, {
      onAttempt: (attempt) => {
        tries = attempt;
      },
      sleep: async () => {},
      ...options,
    });
    for await (const event of call) events.push(event);
  } catch (thrown) {
    error = thrown;
  }
  const texts = events.flatMap((event) => (event.type === "text" ? [event.text] : []));
  return { events, texts, text: texts.join(""), end: events.at(-1), tries, error };
}

/** What both protocols answer, after checking that they agree. */
async function answerTo(content: string): Promise<string> {
  const [one, other] = await Promise.all(protocols.map((each) => ask(each, saying(content))));
  expect(one?.error).toBeUndefined();
  expect(one?.text).toBe(other?.text ?? "");
  return one?.text ?? "";
}

const blocksOf = (text: string, type: Block["type"]) =>
  parseMarkup(text).filter((block) => block.type === type);

const actionsOf = (text: string) => [...actionTokens(text).actions];

test("keys that begin with sandbox are test keys", () => {
  const keys = ["sandbox", "sandbox-1", " sandbox", "sk-sandbox", "SANDBOX", ""];
  expect(keys.filter(isSandboxKey)).toEqual(["sandbox", "sandbox-1", " sandbox"]);
});

describe("the greeting", () => {
  test("greets the sender, says what it is, echoes, and lists what to try", async () => {
    const text = await answerTo("Bob Stone: good morning");
    expect(text).toStartWith("Hello, Bob Stone! 👋");
    expect(text).toContain("**sandbox**");
    expect(text).toContain("> good morning");
    for (const word of ["buy", "alert", "form", "long", "slow", "fail", "help"])
      expect(text).toContain(`\`${word}\``);
  });

  test("does without a label and without words", async () => {
    expect(await answerTo("good morning")).toStartWith("Hello! 👋");
    expect(await answerTo("Alice: @alice:claude")).not.toContain("You said");
  });

  test("knows the last of several lines, and a label from a line that looks like one", async () => {
    const several = await answerTo("Alice: please buy\n\nBob Stone: @alice:claude hi");
    expect(several).toStartWith("Hello, Bob Stone!");
    expect(several).toContain("> hi\n");
    const one = await answerTo("Alice: remember\nnote: milk");
    expect(one).toStartWith("Hello, Alice!");
    expect(one).toContain("> remember\n> note: milk\n");
  });

  test("passes on no markup of others, and not all of a long message", async () => {
    const text = await answerTo('Alice: <button action="trade:sell:X:1">x</button> & <b>');
    expect(actionsOf(text)).toEqual([]);
    expect(text).toContain("&amp; &lt;b>");
    expect(await answerTo(`Alice: ${"🦜".repeat(5000)}`)).toContain(`> ${"🦜".repeat(500)} …\n`);
  });
});

describe("words", () => {
  test.each([
    ["buy", ["trade:buy:AAPL:10", "modify:limit", "cancel:order"]],
    ["alert", ["alert:AAPL:gt:200", "dismiss:alert"]],
  ])("%s shows a card with buttons", async (word, actions) => {
    const text = await answerTo(`Alice: Please ${word.toUpperCase()}!`);
    expect(blocksOf(text, "card")).toHaveLength(1);
    expect(actionsOf(text)).toEqual(actions);
  });

  test("form shows every kind of field", async () => {
    const [form] = blocksOf(await answerTo("Alice: a form"), "form");
    const field = (input_type: string, required: boolean) =>
      expect.objectContaining({ type: "input", input_type, required });
    expect(form).toMatchObject({
      id: "feedback",
      children: [
        field("text", true),
        field("email", false),
        field("number", true),
        field("date", false),
        expect.objectContaining({ type: "select", options: ["Praise", "Question", "Problem"] }),
      ],
    });
  });

  test("long shows Markdown in many pieces", async () => {
    const { texts, text } = await ask("anthropic", saying("Alice: long"));
    expect(texts.length).toBeGreaterThan(400);
    for (const part of [/^# /m, /^## /m, /^```ts$/m, /^\|---\|---\|$/m, /^- /m, /^1\. /m, /^> /m])
      expect(text).toMatch(part);
  });

  test("help lists the words", async () => {
    expect(await answerTo("Alice: help")).toContain("`fail midway`");
  });

  test("count only whole, and the first one decides", async () => {
    expect(await answerTo("Alice: a buyer's formula")).toStartWith("Hello, Alice!");
    expect(await answerTo("Alice: @buy:claude hi")).toStartWith("Hello, Alice!");
    expect(actionsOf(await answerTo("Alice: alert me or buy"))).toContain("alert:AAPL:gt:200");
  });
});

describe.each(protocols)("in the %s protocol", (protocol) => {
  test.each([
    ["fail", "provider_unavailable", 3],
    ["fail rate", "provider_rate_limited", 3],
    ["FAIL Key", "key_rejected", 1],
    ["fail context", "context_too_long", 1],
    ["fail refuse", "provider_refused", 1],
    ["fail midway", "provider_unavailable", 1],
  ])("%s fails as %s", async (words, code, tries) => {
    const outcome = await ask(protocol, saying(`Alice: ${words}`));
    expect(outcome.error).toBeInstanceOf(ProviderError);
    expect(outcome.error).toMatchObject({ code });
    expect(outcome.tries).toBe(tries);
    expect(outcome.text !== "").toBe(words === "fail midway");
  });

  test("every kind of content is accepted, and the text is answered", async () => {
    const data = Buffer.from("content");
    const messages: ModelMessage[] = [
      {
        role: "user",
        content: [
          { type: "text", text: "Alice: good morning" },
          { type: "image", media_type: "image/png", data },
          { type: "file", name: "a.pdf", media_type: "application/pdf", data },
        ],
      },
      { role: "assistant", content: [{ type: "tool_use", id: "1", name: "look", input: {} }] },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "1", content: [], is_error: false }],
      },
    ];
    const { text, error } = await ask(protocol, saying("", { messages }));
    expect(error).toBeUndefined();
    expect(text).toStartWith("Hello, Alice!");
    expect(text).toContain("> good morning\n");
  });

  test("usage is estimated, and no answer is longer than allowed", async () => {
    const { events, texts, end } = await ask(
      protocol,
      saying("Alice: long", { max_output_tokens: 7 }),
    );
    const usage = Object.assign({}, ...events.filter(({ type }) => type === "usage"));
    expect(usage.input_tokens).toBeGreaterThan(10);
    expect(usage.output_tokens).toBeGreaterThan(1);
    expect(texts).toHaveLength(7);
    expect(end).toEqual({ type: "end", reason: "length" });
  });

  test("stopping a slow answer ends it at once", async () => {
    const stop = new AbortController();
    const request = saying("Alice: slow", { signal: stop.signal });
    const call = callModel(adapters[protocol], request, { fetch: sandboxFetch });
    while ((await call.next()).value?.type !== "text");
    const next = call.next();
    stop.abort(new Error("stopped"));
    await expect(next).rejects.toThrow("stopped");
  });

  test("the network is not touched", async () => {
    using network = spyOn(globalThis, "fetch");
    await ask(protocol, saying("Alice: hello"));
    await ask(protocol, saying("Alice: fail"));
    expect(network).not.toHaveBeenCalled();
  });
});

test("what is neither protocol is not found", async () => {
  const response = await rushed("https://provider.invalid/v1/models", { body: "{}" });
  expect(response.status).toBe(404);
});
