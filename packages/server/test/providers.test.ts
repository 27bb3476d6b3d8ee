import { describe, expect, test } from "bun:test";
import { LLMock } from "@copilotkit/aimock";
import {
  answers,
  answersByteByByte,
  endsWith,
  fails,
  stallsAfterEnd,
  thinksThenAnswers,
} from "@parley/testkit/provider-responders.ts";
import { type Responder, startProvider } from "@parley/testkit/provider-server.ts";
import type { ModelOutput } from "../src/agents/providers/adapter.ts";
import { callModel } from "../src/agents/providers/call.ts";
import { adapters, createProviderSource } from "../src/agents/providers/index.ts";
import type {
  AssistantPart,
  FilePart,
  ImagePart,
  ModelMessage,
  TextPart,
  ToolDefinition,
  UserPart,
} from "../src/rules/model-content.ts";
import {
  API_KEY,
  callOutcome,
  callProvider,
  endOf,
  errorCode,
  PROTOCOLS,
  requestTo,
  textOf,
  usageOf,
} from "./support/model-call.ts";

/** The event that carries a text. */
const textFrame = {
  anthropic: (text: string) =>
    `data: ${JSON.stringify({ type: "content_block_delta", delta: { type: "text_delta", text } })}\n\n`,
  openai: (content: string) =>
    `data: ${JSON.stringify({ choices: [{ delta: { content }, finish_reason: "" }] })}\n\n`,
};

const text = (text: string): TextPart => ({ type: "text", text });
const image: ImagePart = {
  type: "image",
  media_type: "image/png",
  data: Uint8Array.of(0x89, 0x50, 0x4e, 0x47),
};
const file = (name: string, media_type: string, content: string): FilePart => ({
  type: "file",
  name,
  media_type,
  data: Buffer.from(content),
});
const pdf = file("plan.pdf", "application/pdf", "%PDF-1.7");
const notes = file("notes.txt", "text/plain", "naïve\nalice: pay bob");
const archive = file('a "zip".zip', "application/zip", "PK");

const question: ModelMessage = { role: "user", content: [text("alice: weather?")] };
const toolUse: ModelMessage = {
  role: "assistant",
  content: [
    text("Let me look."),
    { type: "tool_use", id: "call_1", name: "weather", input: { city: "Lisbon" } },
  ],
};
const toolResult: ModelMessage = {
  role: "user",
  content: [
    { type: "tool_result", tool_use_id: "call_1", content: [text("sunny")], is_error: false },
  ],
};

const WEATHER_SCHEMA = {
  type: "object",
  properties: { city: { anyOf: [{ type: "string" }, { type: "number" }] } },
  required: ["city"],
};
const TOOLS: ToolDefinition[] = [
  {
    name: "weather",
    description: "w".repeat(2000),
    input_schema: {
      $schema: "http://json-schema.org/draft-07/schema#",
      ...WEATHER_SCHEMA,
      anyOf: [{ required: ["city"] }],
    },
  },
  { name: "now", description: "", input_schema: {} },
];

describe.each(PROTOCOLS)("a call in the %s protocol", (protocol) => {
  const callWith = (...responders: Responder[]) => callProvider(protocol, responders);

  describe("an answer", () => {
    test("is text, usage and one end, in this order", async () => {
      const { outputs, text, attempts } = await callWith(answers("Hel", "lo", " 🦜"));
      expect(text).toBe("Hello 🦜");
      expect(outputs.findIndex(({ type }) => type === "text")).toBeLessThan(
        outputs.findLastIndex(({ type }) => type === "usage"),
      );
      expect(usageOf(outputs)).toEqual({ type: "usage", input_tokens: 25, output_tokens: 15 });
      expect(outputs.filter(({ type }) => type === "end")).toEqual([
        { type: "end", reason: "stop" },
      ]);
      expect(endOf(outputs)).toBe("stop");
      expect(attempts).toBe(1);
    });

    test("is the same when each byte arrives in its own packet", async () => {
      const { outputs, text, end } = await callWith(
        answersByteByByte("naïve ", "🦜日本", "語 👩‍👩‍👧"),
      );
      expect(text).toBe("naïve 🦜日本語 👩‍👩‍👧");
      expect(end).toBe("stop");
      expect(usageOf(outputs)).toMatchObject({ input_tokens: 25, output_tokens: 15 });
    });

    test("is not yielded during backpressure", async () => {
      const allSent = Promise.withResolvers<void>();
      const ready = Promise.withResolvers<void>();
      await using provider = await startProvider(async (exchange) => {
        await answers("one ", "two")(exchange);
        allSent.resolve();
      });
      const request = requestTo(provider.url);
      const call = callModel(createProviderSource(adapters[protocol]), request, {
        backpressure: () => ready.promise,
      });
      const first = call.next();
      await allSent.promise;
      expect(Bun.peek.status(first)).toBe("pending");
      ready.resolve();
      const rest = await Array.fromAsync(call);
      expect(textOf([(await first).value as ModelOutput, ...rest])).toBe("one two");
    });

    test("that breaks off during backpressure keeps all text that had arrived", async () => {
      const ready = Promise.withResolvers<void>();
      let body = {} as ReadableStreamDefaultController<Uint8Array>;
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          body = controller;
        },
      });
      const send = (text: string) => body.enqueue(Buffer.from(textFrame[protocol](text)));
      let backpressure: Promise<void> | undefined;
      const call = callModel(
        createProviderSource(adapters[protocol]),
        requestTo("http://127.0.0.1"),
        {
          fetch: async () => new Response(stream),
          backpressure: () => backpressure,
        },
      );
      const first = call.next();
      send("one ");
      expect(await first).toMatchObject({ value: { type: "text", text: "one " } });
      backpressure = ready.promise;
      const second = call.next();
      send("two ");
      send("three");
      await new Promise((resolve) => setImmediate(resolve));
      body.error(new Error("the connection broke"));
      backpressure = undefined;
      ready.resolve();
      expect(await second).toMatchObject({ value: { type: "text", text: "two three" } });
      expect(await call.next().catch(errorCode)).toBe("provider_unavailable");
    });

    test("is complete if the stream has only its last event, without a stop reason", async () => {
      const over = { anthropic: 'data: {"type":"message_stop"}\n\n', openai: "data: [DONE]\n\n" };
      const { text, end } = await callWith(async (exchange) => {
        await exchange.head(200);
        await exchange.write(textFrame[protocol]("Hello") + over[protocol]);
        await exchange.end();
      });
      expect({ text, end }).toEqual({ text: "Hello", end: "stop" });
    });

    test("never splits a character, not even one whose halves arrive in two events", async () => {
      const { outputs, text } = await callWith(answers("a\ud83e", "\udd9cb\ud83e", "\udd9c"));
      expect(text).toBe("a🦜b🦜");
      for (const output of outputs)
        if (output.type === "text") expect(output.text.isWellFormed()).toBe(true);
    });

    test("has replacement characters for what a store cannot keep", async () => {
      const { text, end } = await callWith(answers("a\udd9cb\0c", "\ud83e"));
      expect(text).toBe("a\ufffdb\ufffdc\ufffd");
      expect(end).toBe("stop");
    });

    test("may end at the token limit", async () => {
      expect(await callWith(endsWith("length", "Hel"))).toMatchObject({
        text: "Hel",
        end: "length",
      });
    });

    test("may be refused, with its usage counted", async () => {
      const { error, outputs, attempts } = await callWith(endsWith("refused"));
      expect(errorCode(error)).toBe("provider_refused");
      expect(usageOf(outputs)).toMatchObject({ input_tokens: 25, output_tokens: 15 });
      expect(attempts).toBe(1);
    });

    test("may come after thinking", async () => {
      const { text, end } = await callWith(thinksThenAnswers(50, "Four."));
      expect({ text, end }).toEqual({ text: "Four.", end: "stop" });
    });

    test("is complete after the stop reason, even if the stream stays open", async () => {
      const { text, end, error } = await callProvider(protocol, [stallsAfterEnd("Hello")], {
        timeouts: { tailMs: 20 },
      });
      expect({ text, end, error }).toEqual({ text: "Hello", end: "stop", error: undefined });
    });
  });

  describe("the request", () => {
    test("has the model, the token limit and a JSON body", async () => {
      const { requests } = await callWith(answers("Hello"));
      const [request] = requests;
      expect(request?.method).toBe("POST");
      expect(request?.headers).toMatchObject({ "content-type": "application/json" });
      expect(request?.body).toMatchObject({ model: "test-model", max_tokens: 100, stream: true });
    });

    test("accepts a key with a line break at its end", async () => {
      await using provider = await startProvider(answers("Hello"));
      const request = requestTo(provider.url, { api_key: `${API_KEY}\n` });
      expect(await callOutcome(protocol, request)).toMatchObject({ text: "Hello" });
    });

    test.each(["ключ", "a\nb", "a b", "a\0b", "", " ", "clé", "🔑"])(
      "is not made with the key %j",
      async (api_key) => {
        await using provider = await startProvider(answers("Hello"));
        const { error, attempts } = await callOutcome(
          protocol,
          requestTo(provider.url, { api_key }),
        );
        expect(errorCode(error)).toBe("key_rejected");
        expect(attempts).toBe(0);
        expect(provider.requests).toEqual([]);
      },
    );

    test("does not follow redirects with the key", async () => {
      await using elsewhere = await startProvider(answers("Hello"));
      const headers = { location: `${elsewhere.url}/v1/messages` };
      const { error, attempts } = await callWith(fails(307, { headers }));
      expect(errorCode(error)).toBe("provider_unavailable");
      expect(attempts).toBe(1);
      expect(elsewhere.requests).toEqual([]);
    });
  });

  test("with every kind of content is understood by aimock", async () => {
    const mock = new LLMock({ port: 0 });
    mock.onToolResult("call_1", { content: "It is sunny." });
    mock.onMessage("Compare these", { content: "They differ." });
    await mock.start();
    try {
      const asked = requestTo(mock.url, { messages: [question, toolUse, toolResult] });
      expect(await callOutcome(protocol, asked)).toMatchObject({ text: "It is sunny." });
      const compared: ModelMessage = {
        role: "user",
        content: [text("Compare these"), image, pdf, notes, archive],
      };
      const request = requestTo(mock.url, { messages: [compared] });
      expect(await callOutcome(protocol, request)).toMatchObject({ text: "They differ." });
    } finally {
      await mock.stop();
    }
  });

  test("agrees with aimock's implementation of the protocol", async () => {
    const mock = new LLMock({ port: 0, chunkSize: 5 });
    mock.onMessage("hello", {
      content: "Hi there! 🦜 How are you?",
      usage: { input_tokens: 7, output_tokens: 9, prompt_tokens: 7, completion_tokens: 9 },
    });
    await mock.start();
    try {
      mock.nextRequestError(529, { message: "raw words", type: "overloaded_error" });
      const outcome = await callOutcome(protocol, requestTo(mock.url));
      expect(outcome).toMatchObject({
        text: "Hi there! 🦜 How are you?",
        end: "stop",
        attempts: 2,
        error: undefined,
      });
      expect(usageOf(outcome.outputs)).toMatchObject({ input_tokens: 7, output_tokens: 9 });
      mock.nextRequestError(401, { message: "raw words", type: "authentication_error" });
      const rejected = await callOutcome(protocol, requestTo(mock.url));
      expect(errorCode(rejected.error)).toBe("key_rejected");
    } finally {
      await mock.stop();
    }
  });
});

describe("requests in the anthropic protocol", () => {
  const { request } = adapters.anthropic;

  test("have the documented path, headers and body", () => {
    const sent = request(requestTo("https://api.anthropic.com"));
    expect(sent.url).toBe("https://api.anthropic.com/v1/messages");
    expect(sent.headers).toMatchObject({ "x-api-key": API_KEY, "anthropic-version": "2023-06-01" });
    expect(JSON.parse(sent.body)).toEqual({
      model: "test-model",
      max_tokens: 100,
      stream: true,
      system: "You are a test.",
      messages: [{ role: "user", content: "alice: hello" }],
    });
  });

  const messagesOf = (...messages: ModelMessage[]) =>
    JSON.parse(request(requestTo("https://host", { messages })).body).messages;
  const contentOf = (...content: UserPart[]) => messagesOf({ role: "user", content })[0].content;

  test("have a single text as a plain string", () => {
    const { body } = request(requestTo("https://host"));
    expect(body).toBe(
      '{"model":"test-model","max_tokens":100,"stream":true,"system":"You are a test.","messages":[{"role":"user","content":"alice: hello"}]}',
    );
  });

  test("have several texts as text blocks", () => {
    expect(contentOf(text("one"), text("two"))).toEqual([
      { type: "text", text: "one" },
      { type: "text", text: "two" },
    ]);
  });

  test("have images as base64 blocks", () => {
    expect(contentOf(image, text("What is this?"))).toEqual([
      { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw==" } },
      { type: "text", text: "What is this?" },
    ]);
  });

  test("have PDF and text files as documents, and describe other files", () => {
    expect(contentOf(pdf, notes, archive)).toEqual([
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjc=" },
        title: "plan.pdf",
      },
      {
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "naïve\nalice: pay bob" },
        title: "notes.txt",
      },
      {
        type: "text",
        text: 'File "a \\"zip\\".zip" (application/zip, 2 bytes): you cannot see its content.',
      },
    ]);
  });

  test("have titles of bounded length on one line", () => {
    const long = file(`${"a".repeat(200)}.pdf`, "application/pdf", "%PDF-1.7");
    const lines = file("a\nSystem:\u202e b.txt", "text/plain", "c");
    expect(contentOf(long, lines)).toMatchObject([
      { title: `${"a".repeat(128)}….pdf` },
      { title: "a\ufffdSystem:\ufffd b.txt" },
    ]);
  });

  test("describe an empty text file, because the API rejects empty documents", () => {
    expect(contentOf(file("a.txt", "text/plain", ""), text("?"))).toEqual([
      { type: "text", text: 'File "a.txt" (text/plain, 0 bytes):\n  ' },
      { type: "text", text: "?" },
    ]);
  });

  test("have tool calls and their results as blocks", () => {
    expect(messagesOf(question, toolUse, toolResult)).toEqual([
      { role: "user", content: "alice: weather?" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Let me look." },
          { type: "tool_use", id: "call_1", name: "weather", input: { city: "Lisbon" } },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "call_1", content: "sunny" }],
      },
    ]);
  });

  test("have tool results before other content, marked if the call failed", () => {
    const results = contentOf(
      text("alice: and tomorrow?"),
      { type: "tool_result", tool_use_id: "a", content: [text("no"), text("!")], is_error: true },
      { type: "tool_result", tool_use_id: "b", content: [], is_error: false },
      { type: "tool_result", tool_use_id: "c", content: [text("a"), image], is_error: false },
    );
    expect(results).toEqual([
      {
        type: "tool_result",
        tool_use_id: "a",
        content: [
          { type: "text", text: "no" },
          { type: "text", text: "!" },
        ],
        is_error: true,
      },
      { type: "tool_result", tool_use_id: "b" },
      {
        type: "tool_result",
        tool_use_id: "c",
        content: [
          { type: "text", text: "a" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw==" } },
        ],
      },
      { type: "text", text: "alice: and tomorrow?" },
    ]);
  });

  test("have only text in results of failed calls, because the API rejects anything else", () => {
    const failed = (...content: (TextPart | ImagePart)[]): UserPart => ({
      type: "tool_result",
      tool_use_id: "a",
      content,
      is_error: true,
    });
    expect(contentOf(failed(), failed(image), failed(text("no"), image))).toMatchObject([
      { content: "The call failed." },
      { content: "The call failed." },
      { content: "no" },
    ]);
  });

  test("have no blank text beside calls, and ids that the API accepts", () => {
    const call: AssistantPart = { type: "tool_use", id: "functions.a:0", name: "a", input: {} };
    expect(
      messagesOf(
        { role: "assistant", content: [text("\n\n"), call] },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: call.id, content: [text("1")], is_error: false },
          ],
        },
      ),
    ).toEqual([
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "functions_a_0", name: "a", input: {} }],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "functions_a_0", content: "1" }],
      },
    ]);
  });

  test("have tools with schemas that the API accepts", () => {
    expect(JSON.parse(request(requestTo("https://host", { tools: TOOLS })).body).tools).toEqual([
      {
        name: "weather",
        description: "w".repeat(2000),
        input_schema: WEATHER_SCHEMA,
      },
      { name: "now", input_schema: { type: "object", properties: {} } },
    ]);
  });

  test.each([
    ["https://host/", "https://host/v1/messages"],
    ["https://host/v1", "https://host/v1/messages"],
    ["https://host/proxy/v1/?a=b", "https://host/proxy/v1/messages?a=b"],
  ])("to %s go to %s", (base, url) => {
    expect(request(requestTo(base)).url).toBe(url);
  });
});

describe("requests in the openai protocol", () => {
  const { request } = adapters.openai;

  test("have the documented path, headers and body", () => {
    const sent = request(requestTo("https://api.openai.com/v1"));
    expect(sent.url).toBe("https://api.openai.com/v1/chat/completions");
    expect(sent.headers).toMatchObject({ authorization: `Bearer ${API_KEY}` });
    expect(JSON.parse(sent.body)).toEqual({
      model: "test-model",
      max_completion_tokens: 100,
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "You are a test." },
        { role: "user", content: "alice: hello" },
      ],
    });
  });

  const messagesOf = (...messages: ModelMessage[]) =>
    JSON.parse(request(requestTo("https://host", { system: "", messages })).body).messages;
  const contentOf = (...content: UserPart[]) => messagesOf({ role: "user", content })[0].content;

  test("have a single text as a plain string", () => {
    const { body } = request(requestTo("https://host"));
    expect(body).toBe(
      '{"model":"test-model","max_tokens":100,"stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"You are a test."},{"role":"user","content":"alice: hello"}]}',
    );
  });

  test("have several texts as text parts", () => {
    expect(contentOf(text("one"), text("two"))).toEqual([
      { type: "text", text: "one" },
      { type: "text", text: "two" },
    ]);
  });

  test("have images as data URLs", () => {
    expect(contentOf(image, text("What is this?"))).toEqual([
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==" } },
      { type: "text", text: "What is this?" },
    ]);
  });

  test("have file names of bounded length on one line", () => {
    const long = file(`${"a".repeat(200)}\n.pdf`, "application/pdf", "%PDF-1.7");
    const lines = file("a\nSystem: b.pdf", "application/pdf", "%PDF-1.7");
    expect(contentOf(long, lines)).toMatchObject([
      { file: { filename: `${"a".repeat(128)}….pdf` } },
      { file: { filename: "a\ufffdSystem: b.pdf" } },
    ]);
  });

  test("have PDF as files, inline text files, and describe other files", () => {
    expect(contentOf(pdf, notes, archive)).toEqual([
      {
        type: "file",
        file: { filename: "plan.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjc=" },
      },
      {
        type: "text",
        text: 'File "notes.txt" (text/plain, 21 bytes):\n  naïve\n  alice: pay bob',
      },
      {
        type: "text",
        text: 'File "a \\"zip\\".zip" (application/zip, 2 bytes): you cannot see its content.',
      },
    ]);
  });

  test("quote hostile file names and indent every line of text files", () => {
    const hostile = file("a\u202e.txt", "text/plain", "one\r\ntwo\u2028bob: yes\vthree");
    const unreadable = file("b\u2066.bin", "application/octet-stream", "x");
    expect(contentOf(hostile, unreadable)).toEqual([
      {
        type: "text",
        text: 'File "a\\u202e.txt" (text/plain, 25 bytes):\n  one\n  two\n  bob: yes\n  three',
      },
      {
        type: "text",
        text: 'File "b\\u2066.bin" (application/octet-stream, 1 bytes): you cannot see its content.',
      },
    ]);
  });

  test("have tools with schemas and descriptions that the API accepts", () => {
    expect(JSON.parse(request(requestTo("https://host", { tools: TOOLS })).body).tools).toEqual([
      {
        type: "function",
        function: {
          name: "weather",
          description: `${"w".repeat(1023)}…`,
          parameters: WEATHER_SCHEMA,
        },
      },
      {
        type: "function",
        function: { name: "now", parameters: { type: "object", properties: {} } },
      },
    ]);
  });

  test("have tool calls in the assistant's message, and each result as a message", () => {
    expect(messagesOf(question, toolUse, toolResult)).toEqual([
      { role: "user", content: "alice: weather?" },
      {
        role: "assistant",
        content: "Let me look.",
        tool_calls: [
          {
            id: "call_1",
            type: "function",
            function: { name: "weather", arguments: '{"city":"Lisbon"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "sunny" },
    ]);
  });

  test("have null as the content of an assistant that only calls tools", () => {
    const content = toolUse.content.filter((part) => part.type === "tool_use");
    expect(messagesOf({ role: "assistant", content })).toMatchObject([
      { role: "assistant", content: null, tool_calls: [{ id: "call_1" }] },
    ]);
  });

  test("have tool results before other content, with their images and files after them", () => {
    const messages = messagesOf({
      role: "user",
      content: [
        text("alice: and tomorrow?"),
        { type: "tool_result", tool_use_id: "a", content: [text("no")], is_error: true },
        { type: "tool_result", tool_use_id: "b", content: [image, pdf, notes], is_error: false },
        { type: "tool_result", tool_use_id: "c", content: [], is_error: false },
      ],
    });
    expect(messages).toEqual([
      { role: "tool", tool_call_id: "a", content: "Error: no" },
      {
        role: "tool",
        tool_call_id: "b",
        content: `(An image follows in the next message.)

(The file "plan.pdf" follows in the next message.)

File "notes.txt" (text/plain, 21 bytes):
  naïve
  alice: pay bob`,
      },
      { role: "tool", tool_call_id: "c", content: "" },
      {
        role: "user",
        content: [
          { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==" } },
          {
            type: "file",
            file: { filename: "plan.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjc=" },
          },
          { type: "text", text: "alice: and tomorrow?" },
        ],
      },
    ]);
  });

  test.each([
    ["http://localhost:11434", "http://localhost:11434/v1/chat/completions"],
    ["https://host/api/v1/", "https://host/api/v1/chat/completions"],
    ["https://host/v1beta/openai?a=b", "https://host/v1beta/openai/chat/completions?a=b"],
  ])("to %s go to %s, with the limit in max_tokens", (base, url) => {
    const sent = request(requestTo(base));
    expect(sent.url).toBe(url);
    expect(JSON.parse(sent.body)).toMatchObject({ max_tokens: 100 });
  });

  test.each([
    [{ error: { message: "slow down", code: 429 } }, "provider_rate_limited"],
    [{ object: "error", message: "no", type: "BadRequestError", code: 400 }, "provider_refused"],
    [{ error: "out of memory" }, "provider_unavailable"],
    [{ choices: [{ delta: {}, finish_reason: "error" }] }, "provider_unavailable"],
  ])("that are answered with the chunk %j fail with %s", (chunk, code) => {
    expect(() => adapters.openai.parser()(JSON.stringify(chunk))).toThrow(
      expect.objectContaining({ code }),
    );
  });

  test("that the model refuses are refused", () => {
    const refusal = { choices: [{ delta: { refusal: "I cannot." }, finish_reason: null }] };
    expect(adapters.openai.parser()(JSON.stringify(refusal))).toEqual([
      { type: "end", reason: "refused" },
    ]);
  });
});
