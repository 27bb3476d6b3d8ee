import { describe, expect, test } from "bun:test";
import { LLMock } from "@copilotkit/aimock";
import {
  answers,
  answersByteByByte,
  cutsAfter,
  cutsAfterHead,
  cutsBeforeHead,
  endsWith,
  fails,
  neverEnds,
  reportsErrorAfter,
  sendsGarbageAfter,
  sendsPage,
  stallsAfter,
  stallsAfterEnd,
  stallsAfterHead,
  stallsBeforeHead,
  stopsShortAfter,
  thinksThenAnswers,
} from "@parley/testkit/provider-responders.ts";
import { type Responder, startProvider } from "@parley/testkit/provider-server.ts";
import type { ModelEvent, ModelRequest } from "../src/agents/providers/adapter.ts";
import { type CallOptions, callModel } from "../src/agents/providers/call.ts";
import { adapters, type ProtocolName } from "../src/agents/providers/index.ts";
import { ProviderError } from "../src/agents/providers/provider-errors.ts";
import { sleep } from "../src/agents/providers/sleep.ts";
import type {
  FilePart,
  ImagePart,
  ModelMessage,
  TextPart,
  UserPart,
} from "../src/rules/model-content.ts";

const key = "marker-key-7f3a9";
const protocols: ProtocolName[] = ["anthropic", "openai"];

const requestTo = (base_url: string, changes: Partial<ModelRequest> = {}): ModelRequest => ({
  system: "You are a test.",
  messages: [{ role: "user", content: [{ type: "text", text: "alice: hello" }] }],
  model: "test-model",
  max_output_tokens: 100,
  api_key: key,
  base_url,
  signal: new AbortController().signal,
  ...changes,
});

/** Reads a call to its end, whatever that is, and notes every try and every pause between them. */
async function outcomeOf(protocol: ProtocolName, request: ModelRequest, options: CallOptions = {}) {
  const events: ModelEvent[] = [];
  const waits: number[] = [];
  let tries = 0;
  let error: unknown;
  try {
    const call = callModel(adapters[protocol], request, {
      onAttempt: (attempt) => {
        tries = attempt;
      },
      sleep: async (ms) => void waits.push(ms),
      ...options,
    });
    for await (const event of call) events.push(event);
  } catch (thrown) {
    error = thrown;
  }
  expectNothingLeaks(error);
  return { events, text: textOf(events), end: endOf(events), tries, waits, error };
}

/** Plays the scenes, one a try, and tells how the call went. */
async function play(protocol: ProtocolName, scenes: Responder[], options: CallOptions = {}) {
  await using provider = await startProvider(...scenes);
  const outcome = await outcomeOf(protocol, requestTo(provider.url), options);
  return { ...outcome, requests: provider.requests };
}

function expectNothingLeaks(error: unknown) {
  const shown = Bun.inspect(error);
  expect(shown).not.toContain(key);
  expect(shown).not.toContain("raw words");
}

const textOf = (events: ModelEvent[]) =>
  events.map((event) => (event.type === "text" ? event.text : "")).join("");

const endOf = (events: ModelEvent[]) => {
  const last = events.at(-1);
  return last?.type === "end" ? last.reason : undefined;
};

const codeOf = (error: unknown) => (error instanceof ProviderError ? error.code : error);

/** The totals, since a later figure replaces an earlier one. */
const usageOf = (events: ModelEvent[]) =>
  Object.assign({}, ...events.filter((event) => event.type === "usage"));

/** A piece of an answer as it comes over the wire. */
const pieceOf = {
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

describe.each(protocols)("the %s protocol", (protocol) => {
  const playing = (...scenes: Responder[]) => play(protocol, scenes);

  describe("an answer", () => {
    test("is text, usage and one end, in that order", async () => {
      const { events, text, tries } = await playing(answers("Hel", "lo", " 🦜"));
      expect(text).toBe("Hello 🦜");
      expect(events.findIndex(({ type }) => type === "text")).toBeLessThan(
        events.findLastIndex(({ type }) => type === "usage"),
      );
      expect(usageOf(events)).toEqual({ type: "usage", input_tokens: 25, output_tokens: 15 });
      expect(events.filter(({ type }) => type === "end")).toEqual([
        { type: "end", reason: "stop" },
      ]);
      expect(endOf(events)).toBe("stop");
      expect(tries).toBe(1);
    });

    test("is the same when every byte comes in a packet of its own", async () => {
      const { events, text, end } = await playing(
        answersByteByByte("naïve ", "🦜日本", "語 👩‍👩‍👧"),
      );
      expect(text).toBe("naïve 🦜日本語 👩‍👩‍👧");
      expect(end).toBe("stop");
      expect(usageOf(events)).toMatchObject({ input_tokens: 25, output_tokens: 15 });
    });

    test("is not yielded before it is wanted", async () => {
      const sent = Promise.withResolvers<void>();
      const wanted = Promise.withResolvers<void>();
      await using provider = await startProvider(async (exchange) => {
        await answers("one ", "two")(exchange);
        sent.resolve();
      });
      const request = requestTo(provider.url);
      const call = callModel(adapters[protocol], request, { backpressure: () => wanted.promise });
      const first = call.next();
      await sent.promise;
      expect(Bun.peek.status(first)).toBe("pending");
      wanted.resolve();
      const rest = await Array.fromAsync(call);
      expect(textOf([(await first).value as ModelEvent, ...rest])).toBe("one two");
    });

    test("that breaks off while it is not wanted loses nothing of what had come", async () => {
      const rest = Promise.withResolvers<void>();
      let body = {} as ReadableStreamDefaultController<Uint8Array>;
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          body = controller;
        },
      });
      const send = (text: string) => body.enqueue(Buffer.from(pieceOf[protocol](text)));
      let rests: Promise<void> | undefined;
      const call = callModel(adapters[protocol], requestTo("http://127.0.0.1"), {
        fetch: async () => new Response(stream),
        backpressure: () => rests,
      });
      const first = call.next();
      send("one ");
      expect(await first).toMatchObject({ value: { type: "text", text: "one " } });
      rests = rest.promise;
      const second = call.next();
      send("two ");
      send("three");
      await new Promise((resolve) => setImmediate(resolve));
      body.error(new Error("the connection broke"));
      rests = undefined;
      rest.resolve();
      expect(await second).toMatchObject({ value: { type: "text", text: "two three" } });
      expect(await call.next().catch(codeOf)).toBe("provider_unavailable");
    });

    test("is whole if the stream only says that it is over", async () => {
      const over = { anthropic: 'data: {"type":"message_stop"}\n\n', openai: "data: [DONE]\n\n" };
      const { text, end } = await playing(async (exchange) => {
        await exchange.head(200);
        await exchange.write(pieceOf[protocol]("Hello") + over[protocol]);
        await exchange.end();
      });
      expect({ text, end }).toEqual({ text: "Hello", end: "stop" });
    });

    test("never splits a character, even one whose halves come in two events", async () => {
      const { events, text } = await playing(answers("a\ud83e", "\udd9cb\ud83e", "\udd9c"));
      expect(text).toBe("a🦜b🦜");
      for (const event of events)
        if (event.type === "text") expect(event.text.isWellFormed()).toBe(true);
    });

    test("holds nothing a store could not keep", async () => {
      const { text, end } = await playing(answers("a\udd9cb\0c", "\ud83e"));
      expect(text).toBe("a\ufffdb\ufffdc\ufffd");
      expect(end).toBe("stop");
    });

    test("may be cut off at the longest one allowed", async () => {
      expect(await playing(endsWith("length", "Hel"))).toMatchObject({
        text: "Hel",
        end: "length",
      });
    });

    test("may be refused, and is still paid for", async () => {
      const { error, events, tries } = await playing(endsWith("refused"));
      expect(codeOf(error)).toBe("provider_refused");
      expect(usageOf(events)).toMatchObject({ input_tokens: 25, output_tokens: 15 });
      expect(tries).toBe(1);
    });

    test("may come after long thought", async () => {
      const { text, end } = await playing(thinksThenAnswers(50, "Four."));
      expect({ text, end }).toEqual({ text: "Four.", end: "stop" });
    });

    test("is whole once the model has ended, though the stream stays open", async () => {
      const { text, end, error } = await play(protocol, [stallsAfterEnd("Hello")], {
        timeouts: { tailMs: 20 },
      });
      expect({ text, end, error }).toEqual({ text: "Hello", end: "stop", error: undefined });
    });
  });

  describe("the request", () => {
    test("carries the key, the model and the conversation", async () => {
      const { requests } = await playing(answers("Hello"));
      const [request] = requests;
      expect(request?.method).toBe("POST");
      expect(request?.headers).toMatchObject({ "content-type": "application/json" });
      expect(request?.body).toMatchObject({ model: "test-model", max_tokens: 100, stream: true });
    });

    test("accepts a key with a line break from copying", async () => {
      await using provider = await startProvider(answers("Hello"));
      const request = requestTo(provider.url, { api_key: `${key}\n` });
      expect(await outcomeOf(protocol, request)).toMatchObject({ text: "Hello" });
    });

    test.each(["ключ", "a\nb", "a b", "a\0b", "", " ", "clé", "🔑"])(
      "is not made with the key %j",
      async (api_key) => {
        await using provider = await startProvider(answers("Hello"));
        const { error, tries } = await outcomeOf(protocol, requestTo(provider.url, { api_key }));
        expect(codeOf(error)).toBe("key_rejected");
        expect(tries).toBe(0);
        expect(provider.requests).toEqual([]);
      },
    );

    test("does not follow redirects with the key", async () => {
      await using elsewhere = await startProvider(answers("Hello"));
      const headers = { location: `${elsewhere.url}/v1/messages` };
      const { error, tries } = await playing(fails(307, { headers }));
      expect(codeOf(error)).toBe("provider_unavailable");
      expect(tries).toBe(1);
      expect(elsewhere.requests).toEqual([]);
    });
  });

  describe("error answers", () => {
    test.each([
      [401, "key_rejected", {}],
      [401, "key_rejected", { message: `incorrect key provided: ${key}` }],
      [403, "key_rejected", { type: "permission_error" }],
      [400, "key_rejected", { type: "authentication_error" }],
      [400, "provider_refused", { type: "invalid_request_error" }],
      [400, "provider_refused", { message: "Your credit balance is too low" }],
      [402, "provider_refused", { type: "billing_error" }],
      [404, "provider_refused", { type: "not_found_error" }],
      [422, "provider_refused", {}],
      [413, "context_too_long", { type: "request_too_large" }],
      [400, "context_too_long", { message: "prompt is too long: 21 tokens > 20 maximum" }],
      [400, "context_too_long", { message: "This model's maximum context length is 8 tokens." }],
      [400, "context_too_long", { message: "the model's context length is only 1024 tokens" }],
      [400, "context_too_long", { message: "Your input exceeds the context window" }],
      [500, "context_too_long", { type: "exceed_context_size_error" }],
    ])("%d means %s at once (%j)", async (status, code, error) => {
      const outcome = await playing(fails(status, error));
      expect(codeOf(outcome.error)).toBe(code);
      expect(outcome.error).toMatchObject({ status, retryable: false });
      expect(outcome.requests).toHaveLength(1);
    });

    test("429 is tried three times even when the quota is used up", async () => {
      const { error, requests } = await playing(fails(429, { type: "insufficient_quota" }));
      expect(codeOf(error)).toBe("provider_rate_limited");
      expect(requests).toHaveLength(3);
    });

    test.each([
      [429, "provider_rate_limited"],
      [500, "provider_unavailable"],
      [502, "provider_unavailable"],
      [503, "provider_unavailable"],
      [504, "provider_unavailable"],
      [529, "provider_unavailable"],
    ])("%d means %s after three tries", async (status, code) => {
      const message = "raw words about a context of some size";
      const { error, requests, tries } = await playing(fails(status, { message }));
      expect(codeOf(error)).toBe(code);
      expect(error).toMatchObject({ status, retryable: true });
      expect({ tries, requests: requests.length }).toEqual({ tries: 3, requests: 3 });
    });

    test("408 is tried again like a broken connection", async () => {
      expect(await playing(fails(408), answers("Hello"))).toMatchObject({
        text: "Hello",
        tries: 2,
      });
    });

    test("count by their status when their body is no JSON, never ends or never comes", async () => {
      const page: Responder = async ({ head, write, end }) => {
        await head(401, { "content-type": "text/html" });
        await write("<html>raw words of the provider</html>");
        await end();
      };
      const flood: Responder = async ({ head, write }) => {
        await head(401);
        for (;;) await write("raw words ".repeat(1000));
      };
      const silence: Responder = async ({ head, stall }) => {
        await head(401);
        await stall();
      };
      for (const scene of [page, flood, silence]) {
        const { error } = await play(protocol, [scene], { timeouts: { errorBodyMs: 20 } });
        expect(codeOf(error)).toBe("key_rejected");
      }
    });
  });

  describe("tries", () => {
    const beforeText: [string, Responder][] = [
      ["a connection cut before the head", cutsBeforeHead],
      ["a connection cut after the head", cutsAfterHead],
      ["a connection cut before any text", cutsAfter(Promise.resolve())],
      ["an answer without text or end", stopsShortAfter()],
      ["nonsense before any text", sendsGarbageAfter()],
      ["a page that is no stream", sendsPage],
      ["an error event before any text", reportsErrorAfter("overloaded_error")],
    ];

    test.each(beforeText)("%s is tried again", async (_, scene) => {
      const outcome = await playing(scene, scene, answers("Hello"));
      expect(outcome).toMatchObject({ text: "Hello", end: "stop", tries: 3, error: undefined });
      expect(usageOf(outcome.events)).toMatchObject({ input_tokens: 25, output_tokens: 15 });
    });

    test.each(beforeText)("%s fails after the third try", async (_, scene) => {
      const { error, events, requests } = await playing(scene);
      expect(codeOf(error)).toBe("provider_unavailable");
      expect(events).toEqual([]);
      expect(requests).toHaveLength(3);
    });

    const afterText: [string, Responder][] = [
      ["a missing end", stopsShortAfter("Hel", "lo")],
      ["nonsense", sendsGarbageAfter("Hel", "lo")],
      ["an error event", reportsErrorAfter("overloaded_error", "Hel", "lo")],
    ];

    test.each(afterText)("%s after text is final, and the text stays", async (_, scene) => {
      const { error, text, end, requests } = await playing(scene, answers("Hello"));
      expect(codeOf(error)).toBe("provider_unavailable");
      expect({ text, end }).toEqual({ text: "Hello", end: undefined });
      expect(requests).toHaveLength(1);
    });

    test("a connection cut after text is final, and the text stays", async () => {
      const cue = Promise.withResolvers<void>();
      await using provider = await startProvider(cutsAfter(cue.promise, "Hello"), answers("Hello"));
      const call = callModel(adapters[protocol], requestTo(provider.url));
      while ((await call.next()).value?.type !== "text");
      cue.resolve();
      const error = await call.next().catch((thrown) => thrown);
      expect(codeOf(error)).toBe("provider_unavailable");
      expect(provider.requests).toHaveLength(1);
    });

    test.each([
      ["overloaded_error", "provider_unavailable", 3],
      ["api_error", "provider_unavailable", 3],
      ["rate_limit_error", "provider_rate_limited", 3],
      ["authentication_error", "key_rejected", 1],
      ["invalid_request_error", "provider_refused", 1],
      ["request_too_large", "context_too_long", 1],
    ])("an event with %s means %s", async (type, code, tries) => {
      const { error, requests } = await playing(reportsErrorAfter(type));
      expect(codeOf(error)).toBe(code);
      expect(requests).toHaveLength(tries);
    });

    test("nobody listening at the address is a broken connection too", async () => {
      const provider = await startProvider(answers("Hello"));
      await provider[Symbol.asyncDispose]();
      const { error, tries } = await outcomeOf(protocol, requestTo(provider.url));
      expect(codeOf(error)).toBe("provider_unavailable");
      expect(tries).toBe(3);
    });

    test("pauses grow from try to try, with jitter", async () => {
      const { waits } = await play(protocol, [fails(500)], {
        retry: { maxAttempts: 5, backoffMs: 100 },
      });
      expect(waits).toHaveLength(4);
      for (const [index, wait] of waits.entries()) {
        expect(wait).toBeGreaterThanOrEqual(50 * 2 ** index);
        expect(wait).toBeLessThanOrEqual(100 * 2 ** index);
      }
    });

    test.each([
      ["retry-after", "7", 7000],
      ["retry-after", "1.5", 1500],
      ["retry-after-ms", "250", 250],
      ["retry-after", "nonsense", 0],
    ])("%s: %s is obeyed", async (name, value, asked) => {
      const scenes = [fails(429, { headers: { [name]: value } }), answers("Hello")];
      const { text, waits } = await play(protocol, scenes, { retry: { backoffMs: 100 } });
      expect(text).toBe("Hello");
      expect(waits).toHaveLength(1);
      expect(waits[0]).toBeGreaterThanOrEqual(asked + 50);
      expect(waits[0]).toBeLessThanOrEqual(asked + 100);
    });

    test("a date to come back at is obeyed", async () => {
      const date = new Date(Date.now() + 20_000).toUTCString();
      const outcome = await playing(
        fails(503, { headers: { "retry-after": date } }),
        answers("Hi"),
      );
      expect(outcome.text).toBe("Hi");
      expect(outcome.waits[0]).toBeGreaterThan(10_000);
      expect(outcome.waits[0]).toBeLessThan(21_000);
    });

    test("a provider that asks for too long a pause is not tried again", async () => {
      const { error, requests } = await playing(fails(429, { headers: { "retry-after": "31" } }));
      expect(codeOf(error)).toBe("provider_rate_limited");
      expect(error).toMatchObject({ retry_after_ms: 31_000 });
      expect(requests).toHaveLength(1);
    });
  });

  describe("time-outs", () => {
    test.each([
      ["before the head", stallsBeforeHead, { headersMs: 20 }, ""],
      ["after the head", stallsAfterHead, { firstTokenMs: 20 }, ""],
      ["before any text", stallsAfter(), { firstTokenMs: 20 }, ""],
      ["between two texts", stallsAfter("Hel", "lo"), { idleMs: 20 }, "Hello"],
    ])("silence %s ends the call and its connection", async (_, scene, timeouts, text) => {
      await using provider = await startProvider(scene);
      const outcome = await outcomeOf(protocol, requestTo(provider.url), { timeouts });
      expect(codeOf(outcome.error)).toBe("timeout");
      expect(outcome.text).toBe(text);
      await provider.requests[0]?.closed;
      expect(provider.requests).toHaveLength(1);
    });
  });

  describe("aborting", () => {
    test("before the call makes no request", async () => {
      await using provider = await startProvider(answers("Hello"));
      const signal = AbortSignal.abort(new Error("stopped"));
      const { error } = await outcomeOf(protocol, requestTo(provider.url, { signal }));
      expect(error).toBe(signal.reason);
      expect(provider.requests).toEqual([]);
    });

    test("before the head closes the connection", async () => {
      const stop = new AbortController();
      const reason = new Error("stopped");
      await using provider = await startProvider(({ stall }) => {
        stop.abort(reason);
        return stall();
      });
      const request = requestTo(provider.url, { signal: stop.signal });
      expect(await outcomeOf(protocol, request)).toMatchObject({ error: reason, tries: 1 });
      await provider.requests[0]?.closed;
    });

    test("amid the text closes the connection, even while nobody reads", async () => {
      const stop = new AbortController();
      await using provider = await startProvider(stallsAfter("Hel"));
      const request = requestTo(provider.url, { signal: stop.signal });
      const call = callModel(adapters[protocol], request);
      while ((await call.next()).value?.type !== "text");
      stop.abort(new Error("stopped"));
      await provider.requests[0]?.closed;
      await expect(call.next()).rejects.toThrow("stopped");
    });

    test("between two tries makes no further one", async () => {
      const stop = new AbortController();
      await using provider = await startProvider(fails(429, { headers: { "retry-after": "20" } }));
      const request = requestTo(provider.url, { signal: stop.signal });
      const { error } = await outcomeOf(protocol, request, {
        sleep: (ms, signal) => {
          queueMicrotask(() => stop.abort(new Error("stopped")));
          return sleep(ms, signal);
        },
      });
      expect(error).toBe(stop.signal.reason);
      expect(provider.requests).toHaveLength(1);
    });

    test("a reader that stops reading closes the connection", async () => {
      await using provider = await startProvider(stallsAfter("Hel"));
      for await (const event of callModel(adapters[protocol], requestTo(provider.url)))
        if (event.type === "text") break;
      await provider.requests[0]?.closed;
    });
  });

  describe("a provider that never ends", () => {
    test("is cut off far beyond the longest answer allowed", async () => {
      await using provider = await startProvider(neverEnds((frames) => frames.text("word ")));
      const request = requestTo(provider.url, { max_output_tokens: 50 });
      const { text, end } = await outcomeOf(protocol, request);
      expect(end).toBe("length");
      expect(text.length).toBeGreaterThanOrEqual(50 * 16);
      expect(text.length).toBeLessThan(50 * 16 + 10);
      await provider.requests[0]?.closed;
    });

    test.each([
      ["thoughts", neverEnds((frames) => frames.thinking.repeat(1000))],
      ["comments", neverEnds(() => ": still here\n\n".repeat(1000))],
      ["one event", neverEnds(() => "data: ".repeat(10_000))],
    ])("is cut off when it sends nothing but %s", async (_, scene) => {
      await using provider = await startProvider(scene);
      const { error, tries } = await outcomeOf(protocol, requestTo(provider.url));
      expect(codeOf(error)).toBe("provider_unavailable");
      expect(tries).toBe(1);
      await provider.requests[0]?.closed;
    });
  });

  test("is read by aimock with every kind of content", async () => {
    const mock = new LLMock({ port: 0 });
    mock.onToolResult("call_1", { content: "It is sunny." });
    mock.onMessage("Compare these", { content: "They differ." });
    await mock.start();
    try {
      const asked = requestTo(mock.url, { messages: [question, toolUse, toolResult] });
      expect(await outcomeOf(protocol, asked)).toMatchObject({ text: "It is sunny." });
      const compared: ModelMessage = {
        role: "user",
        content: [text("Compare these"), image, pdf, notes, archive],
      };
      const request = requestTo(mock.url, { messages: [compared] });
      expect(await outcomeOf(protocol, request)).toMatchObject({ text: "They differ." });
    } finally {
      await mock.stop();
    }
  });

  test("agrees with aimock's reading of the protocol", async () => {
    const mock = new LLMock({ port: 0, chunkSize: 5 });
    mock.onMessage("hello", {
      content: "Hi there! 🦜 How are you?",
      usage: { input_tokens: 7, output_tokens: 9, prompt_tokens: 7, completion_tokens: 9 },
    });
    await mock.start();
    try {
      mock.nextRequestError(529, { message: "raw words", type: "overloaded_error" });
      const outcome = await outcomeOf(protocol, requestTo(mock.url));
      expect(outcome).toMatchObject({
        text: "Hi there! 🦜 How are you?",
        end: "stop",
        tries: 2,
        error: undefined,
      });
      expect(usageOf(outcome.events)).toMatchObject({ input_tokens: 7, output_tokens: 9 });
      mock.nextRequestError(401, { message: "raw words", type: "authentication_error" });
      const rejected = await outcomeOf(protocol, requestTo(mock.url));
      expect(codeOf(rejected.error)).toBe("key_rejected");
    } finally {
      await mock.stop();
    }
  });
});

test("a carrier that heeds no signal cannot hold a call up", async () => {
  const deaf = () => new Promise<never>(() => {});
  const options: CallOptions = { fetch: deaf, timeouts: { headersMs: 20 } };
  const { error } = await outcomeOf("openai", requestTo("http://provider.invalid"), options);
  expect(codeOf(error)).toBe("timeout");
});

describe("requests in the anthropic protocol", () => {
  const { request } = adapters.anthropic;

  test("have the documented path, headers and body", () => {
    const wire = request(requestTo("https://api.anthropic.com"));
    expect(wire.url).toBe("https://api.anthropic.com/v1/messages");
    expect(wire.headers).toMatchObject({ "x-api-key": key, "anthropic-version": "2023-06-01" });
    expect(JSON.parse(wire.body)).toEqual({
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
      { type: "tool_result", tool_use_id: "a", content: [text("no"), image], is_error: true },
      { type: "tool_result", tool_use_id: "b", content: [], is_error: false },
    );
    expect(results).toEqual([
      {
        type: "tool_result",
        tool_use_id: "a",
        content: [
          { type: "text", text: "no" },
          { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw==" } },
        ],
        is_error: true,
      },
      { type: "tool_result", tool_use_id: "b" },
      { type: "text", text: "alice: and tomorrow?" },
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
    const wire = request(requestTo("https://api.openai.com/v1"));
    expect(wire.url).toBe("https://api.openai.com/v1/chat/completions");
    expect(wire.headers).toMatchObject({ authorization: `Bearer ${key}` });
    expect(JSON.parse(wire.body)).toEqual({
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
  ])("to %s go to %s, with the older name for the limit", (base, url) => {
    const wire = request(requestTo(base));
    expect(wire.url).toBe(url);
    expect(JSON.parse(wire.body)).toMatchObject({ max_tokens: 100 });
  });

  test.each([
    [{ error: { message: "slow down", code: 429 } }, "provider_rate_limited"],
    [{ object: "error", message: "no", type: "BadRequestError", code: 400 }, "provider_refused"],
    [{ error: "out of memory" }, "provider_unavailable"],
    [{ choices: [{ delta: {}, finish_reason: "error" }] }, "provider_unavailable"],
  ])("that end in %j fail as %s", (chunk, code) => {
    expect(() => adapters.openai.parse(JSON.stringify(chunk))).toThrow(
      expect.objectContaining({ code }),
    );
  });

  test("that the model itself refuses are refused", () => {
    const refusal = { choices: [{ delta: { refusal: "I cannot." }, finish_reason: null }] };
    expect(adapters.openai.parse(JSON.stringify(refusal))).toEqual([
      { type: "end", reason: "refused" },
    ]);
  });
});
