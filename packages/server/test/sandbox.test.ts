import { describe, expect, spyOn, test } from "bun:test";
import { actionTokens, type Block, parseMarkup } from "@parley/protocol/markup";
import { stripedPng } from "@parley/testkit/pictures.ts";
import type { ModelOutput, ModelRequest } from "../src/agents/providers/adapter.ts";
import { callModel } from "../src/agents/providers/call.ts";
import { ProviderError } from "../src/agents/providers/provider-errors.ts";
import { createSandbox, sandbox } from "../src/agents/sandbox/index.ts";
import type { FilePart, ImagePart, ModelMessage, UserPart } from "../src/rules/model-content.ts";
import { isSandboxKey } from "../src/rules/sandbox.ts";

const withoutDelays = createSandbox({ speed: Number.POSITIVE_INFINITY });

const requestWith = (text: string, changes: Partial<ModelRequest> = {}): ModelRequest => ({
  system: "You are alice:claude. Participants: Alice, Bob Stone.",
  messages: [
    { role: "user", content: [{ type: "text", text: "Alice: fail" }] },
    { role: "assistant", content: [{ type: "text", text: "Never mind." }] },
    { role: "user", content: [{ type: "text", text }] },
  ],
  tools: [],
  model: "test-model",
  max_output_tokens: 4096,
  api_key: "sandbox",
  base_url: "https://provider.invalid",
  signal: new AbortController().signal,
  ...changes,
});

async function ask(request: ModelRequest) {
  const outputs: ModelOutput[] = [];
  let attempts = 0;
  let error: unknown;
  try {
    const call = callModel(withoutDelays, request, {
      onAttempt: (attempt) => {
        attempts = attempt;
      },
      sleep: async () => {},
    });
    for await (const output of call) outputs.push(output);
  } catch (thrown) {
    error = thrown;
  }
  const texts = outputs.flatMap((output) => (output.type === "text" ? [output.text] : []));
  return { outputs, texts, text: texts.join(""), end: outputs.at(-1), attempts, error };
}

const answerTo = (content: string): Promise<string> => answerToRequest(requestWith(content));

async function answerToRequest(request: ModelRequest): Promise<string> {
  const { error, text } = await ask(request);
  expect(error).toBeUndefined();
  return text;
}

const blocksOf = (text: string, type: Block["type"]) =>
  parseMarkup(text).filter((block) => block.type === type);

const actionsOf = (text: string) => [...actionTokens(text).actions];

test("keys that begin with sandbox are sandbox keys", () => {
  const keys = ["sandbox", "sandbox-1", " sandbox", "sk-sandbox", "SANDBOX", ""];
  expect(keys.filter(isSandboxKey)).toEqual(["sandbox", "sandbox-1", " sandbox"]);
});

describe("the greeting of the sandbox", () => {
  test("names the sender and the sandbox, quotes the message and lists the keywords", async () => {
    const text = await answerTo("Bob Stone: good morning");
    expect(text).toStartWith("Hello, Bob Stone! 👋");
    expect(text).toContain("**sandbox**");
    expect(text).toContain("> good morning");
    for (const word of ["buy", "alert", "form", "long", "slow", "fail", "help"])
      expect(text).toContain(`\`${word}\``);
  });

  test("works without a label and without text", async () => {
    expect(await answerTo("good morning")).toStartWith("Hello! 👋");
    expect(await answerTo("Alice: @alice:claude")).not.toContain("You said");
  });

  test("answers the last of several messages, and ignores lines that only look labelled", async () => {
    const several = await answerTo("Alice: please buy\n\nBob Stone: @alice:claude hi");
    expect(several).toStartWith("Hello, Bob Stone!");
    expect(several).toContain("> hi\n");
    const one = await answerTo("Alice: remember\nnote: milk");
    expect(one).toStartWith("Hello, Alice!");
    expect(one).toContain("> remember\n> note: milk\n");
  });

  test("escapes markup and shortens long messages", async () => {
    const text = await answerTo('Alice: <button action="trade:sell:X:1">x</button> & <b>');
    expect(actionsOf(text)).toEqual([]);
    expect(text).toContain("&amp; &lt;b>");
    expect(await answerTo(`Alice: ${"🦜".repeat(5000)}`)).toContain(`> ${"🦜".repeat(500)} …\n`);
  });
});

describe("files for the sandbox", () => {
  const picture = (...colours: Parameters<typeof stripedPng>[2][]): ImagePart => ({
    type: "image",
    media_type: "image/png",
    data: stripedPng(640, 480, ...colours),
  });
  const file = (name: string, media_type: string, content: string): FilePart => ({
    type: "file",
    name,
    media_type,
    data: Buffer.from(content),
  });
  const red = [220, 30, 30] as const;
  const white = [255, 255, 255] as const;

  /** The answer to a message with files, or to an earlier one and a last text. */
  const answerToFiles = (parts: UserPart[], last = "") =>
    answerToRequest(
      requestWith("", {
        messages: [
          {
            role: "user",
            content: [{ type: "text", text: 'Alice: hi\n  (file "form.png", 1 bytes)' }, ...parts],
          },
          ...(last === ""
            ? []
            : [
                { role: "assistant", content: [{ type: "text", text: "Seen." }] } as const,
                { role: "user", content: [{ type: "text", text: last }] } as const,
              ]),
        ],
      }),
    );

  test("that were just sent are described: pictures by size and colours", async () => {
    const text = await answerToFiles([picture(red, white)]);
    expect(text).toStartWith("Hello, Alice!");
    expect(text).toContain(
      "> hi\n\nI see:\n\n- a picture of 640 × 480 pixels, mostly red and white\n",
    );
  });

  test.each([
    ["red", [red]],
    [
      "blue and yellow",
      [
        [20, 40, 220],
        [20, 40, 220],
        [250, 240, 30],
      ],
    ],
    [
      "black and grey",
      [
        [0, 0, 0],
        [0, 0, 0],
        [128, 128, 128],
      ],
    ],
    [
      "green",
      [
        [30, 160, 50],
        [30, 150, 60],
        [40, 170, 60],
        [30, 160, 40],
        [255, 140, 0],
      ],
    ],
    ["brown", [[110, 60, 20]]],
  ] as const)("a picture that is mostly %s is described so", async (names, colours) => {
    const text = await answerToFiles([picture(...colours)]);
    expect(text).toContain(`pixels, mostly ${names}\n`);
  });

  test("text is described by its first words, PDF by name and size", async () => {
    const text = await answerToFiles([
      file("notes.txt", "text/plain", "Dear all,\n\nwe <b>meet</b> on Monday"),
      file("plan.pdf", "application/pdf", "%PDF-1.7"),
      { type: "image", media_type: "image/png", data: Buffer.from("broken") },
    ]);
    expect(
      text,
    ).toContain(`- the text file «notes.txt», which begins with «Dear all, we &lt;b>meet&lt;/b> on Monday»
- the document «plan.pdf» of 8 bytes
- a picture that I cannot read
`);
  });

  test("from before the last answer are described if somebody asks for files", async () => {
    expect(await answerToFiles([picture(red)], "Alice: hello")).not.toContain("a picture");
    expect(await answerToFiles([picture(red)], "Alice: which files?")).toBe(
      "I see:\n\n- a picture of 640 × 480 pixels, mostly red",
    );
    expect(await answerTo("Alice: files")).toStartWith("I see no files");
  });

  test("count in the usage", async () => {
    const inputTokens = async (content: UserPart[]) => {
      const messages: ModelMessage[] = [{ role: "user", content }];
      const { outputs } = await ask(requestWith("", { messages }));
      return Object.assign({}, ...outputs.filter(({ type }) => type === "usage")).input_tokens;
    };
    const hello: UserPart = { type: "text", text: "Alice: hello" };
    const more = (await inputTokens([hello, picture(red)])) - (await inputTokens([hello]));
    expect(more).toBe(Math.ceil((640 * 480) / 750));
  });
});

describe("keywords of the sandbox", () => {
  test.each([
    ["buy", ["trade:buy:AAPL:10", "modify:limit", "cancel:order"]],
    ["alert", ["alert:AAPL:gt:200", "dismiss:alert"]],
  ])("%s shows a card with buttons", async (word, actions) => {
    const text = await answerTo(`Alice: Please ${word.toUpperCase()}!`);
    expect(blocksOf(text, "card")).toHaveLength(1);
    expect(actionsOf(text)).toEqual(actions);
  });

  test.each([
    ["buy 3 ACME", "Buy 3 ACME", "trade:buy:ACME:3"],
    ["Please buy 12 brk.b!", "Buy 12 BRK.B", "trade:buy:BRK.B:12"],
    ["buy 5 shares of msft now", "Buy 5 MSFT", "trade:buy:MSFT:5"],
    ["BUY ACME", "Buy 10 ACME", "trade:buy:ACME:10"],
    ["buy 7", "Buy 7 AAPL", "trade:buy:AAPL:7"],
    ["buy me some tea", "Buy 10 AAPL", "trade:buy:AAPL:10"],
    ["buy 0 ACME", "Buy 10 ACME", "trade:buy:ACME:10"],
  ])("«%s» shows the order «%s»", async (words, title, action) => {
    const text = await answerTo(`Alice: ${words}`);
    expect(blocksOf(text, "card")).toMatchObject([{ title }]);
    expect(actionsOf(text)[0]).toBe(action);
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

  test("long streams Markdown in many texts", async () => {
    const { texts, text } = await ask(requestWith("Alice: long"));
    expect(texts.length).toBeGreaterThan(400);
    for (const pattern of [
      /^# /m,
      /^## /m,
      /^```ts$/m,
      /^\|---\|---\|$/m,
      /^- /m,
      /^1\. /m,
      /^> /m,
    ])
      expect(text).toMatch(pattern);
  });

  test("help lists the keywords", async () => {
    expect(await answerTo("Alice: help")).toContain("`fail midway`");
  });

  test("count only as whole words, and the first one decides", async () => {
    expect(await answerTo("Alice: a buyer's formula")).toStartWith("Hello, Alice!");
    expect(await answerTo("Alice: @buy:claude hi")).toStartWith("Hello, Alice!");
    expect(actionsOf(await answerTo("Alice: alert me or buy"))).toContain("alert:AAPL:gt:200");
  });
});

describe("the sandbox", () => {
  test.each([
    ["fail", "provider_unavailable", 3],
    ["fail rate", "provider_rate_limited", 3],
    ["FAIL Key", "key_rejected", 1],
    ["fail context", "context_too_long", 1],
    ["fail refuse", "provider_refused", 1],
    ["fail midway", "provider_unavailable", 1],
  ])("answers the words «%s» by failing with %s", async (words, code, attempts) => {
    const outcome = await ask(requestWith(`Alice: ${words}`));
    expect(outcome.error).toBeInstanceOf(ProviderError);
    expect(outcome.error).toMatchObject({ code });
    expect(outcome.attempts).toBe(attempts);
    expect(outcome.text !== "").toBe(words === "fail midway");
  });

  test("accepts every kind of content, and answers the text", async () => {
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
        content: [
          { type: "tool_result", tool_use_id: "1", content: [], is_error: false },
          { type: "text", text: "Alice: and good night" },
        ],
      },
    ];
    const { text, error } = await ask(requestWith("", { messages }));
    expect(error).toBeUndefined();
    expect(text).toStartWith("Hello, Alice!");
    expect(text).toContain("> and good night\n");
  });

  test("estimates the usage, and ends the answer at the token limit", async () => {
    const { outputs, texts, end } = await ask(requestWith("Alice: long", { max_output_tokens: 7 }));
    const usage = Object.assign({}, ...outputs.filter(({ type }) => type === "usage"));
    expect(usage.input_tokens).toBeGreaterThan(10);
    expect(usage.output_tokens).toBeGreaterThan(1);
    expect(texts).toHaveLength(7);
    expect(end).toEqual({ type: "end", reason: "length" });
  });

  test("ends a slow answer at once when it is aborted", async () => {
    const stop = new AbortController();
    const request = requestWith("Alice: slow", { signal: stop.signal });
    const call = callModel(sandbox, request);
    while ((await call.next()).value?.type !== "text");
    const next = call.next();
    stop.abort(new Error("stopped"));
    await expect(next).rejects.toThrow("stopped");
  });

  test("replaces what no store can keep", async () => {
    const text = await answerTo(
      'Alice: files\n  (file "a\\u0000\\ud800", text/plain, 5 bytes; gone)',
    );
    expect(text).toContain("«a\ufffd\ufffd»");
  });

  test("sends no request to the network", async () => {
    using network = spyOn(globalThis, "fetch");
    await ask(requestWith("Alice: hello"));
    await ask(requestWith("Alice: fail"));
    expect(network).not.toHaveBeenCalled();
  });
});
