import { describe, expect, test } from "bun:test";
import {
  answers,
  cutsAfter,
  cutsAfterHead,
  cutsBeforeHead,
  fails,
  neverEnds,
  reportsErrorAfter,
  sendsGarbageAfter,
  sendsPage,
  stallsAfter,
  stallsAfterHead,
  stallsBeforeHead,
  stopsShortAfter,
  thinksThenStops,
} from "@parley/testkit/provider-responders.ts";
import { type Responder, startProvider } from "@parley/testkit/provider-server.ts";
import { type CallOptions, callModel, sleep } from "../src/agents/providers/call.ts";
import { adapters, createProviderSource } from "../src/agents/providers/index.ts";
import {
  API_KEY,
  callOutcome,
  callProvider,
  errorCode,
  PROTOCOLS,
  requestTo,
  usageOf,
} from "./support/model-call.ts";

describe.each(PROTOCOLS)("a call in the %s protocol", (protocol) => {
  const callWith = (...responders: Responder[]) => callProvider(protocol, responders);

  describe("that gets an error response", () => {
    test.each([
      [401, "key_rejected", {}],
      [401, "key_rejected", { message: `incorrect key provided: ${API_KEY}` }],
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
    ])("of %d fails with %s without a retry (%j)", async (status, code, error) => {
      const outcome = await callWith(fails(status, error));
      expect(errorCode(outcome.error)).toBe(code);
      expect(outcome.error).toMatchObject({ status, retryable: false });
      expect(outcome.requests).toHaveLength(1);
    });

    test("of 429 is retried even when the quota is used up", async () => {
      const { error, requests } = await callWith(fails(429, { type: "insufficient_quota" }));
      expect(errorCode(error)).toBe("provider_rate_limited");
      expect(requests).toHaveLength(3);
    });

    test.each([
      [429, "provider_rate_limited"],
      [500, "provider_unavailable"],
      [502, "provider_unavailable"],
      [503, "provider_unavailable"],
      [504, "provider_unavailable"],
      [529, "provider_unavailable"],
    ])("of %d fails with %s after three attempts", async (status, code) => {
      const message = "raw words about a context of some size";
      const { error, requests, attempts } = await callWith(fails(status, { message }));
      expect(errorCode(error)).toBe(code);
      expect(error).toMatchObject({ status, retryable: true });
      expect({ attempts, requests: requests.length }).toEqual({ attempts: 3, requests: 3 });
    });

    test("of 408 is retried like a broken connection", async () => {
      expect(await callWith(fails(408), answers("Hello"))).toMatchObject({
        text: "Hello",
        attempts: 2,
      });
    });

    test("is understood with a byte order mark", async () => {
      const marked: Responder = async ({ head, write, end }) => {
        await head(400, { "content-type": "application/json" });
        await write(
          '\uFEFF{"error":{"type":"invalid_request_error","message":"prompt is too long"}}',
        );
        await end();
      };
      expect(errorCode((await callWith(marked)).error)).toBe("context_too_long");
    });

    test("fails by its status when the body is not JSON, never ends or never arrives", async () => {
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
      for (const responder of [page, flood, silence]) {
        const { error } = await callProvider(protocol, [responder], {
          timeouts: { errorBodyMs: 20 },
        });
        expect(errorCode(error)).toBe("key_rejected");
      }
    });
  });

  describe("retries", () => {
    const beforeText: [string, Responder][] = [
      ["a connection that breaks before the headers", cutsBeforeHead],
      ["a connection that breaks after the headers", cutsAfterHead],
      ["a connection that breaks before any text", cutsAfter(Promise.resolve())],
      ["an answer without text or end", stopsShortAfter()],
      ["garbage before any text", sendsGarbageAfter()],
      ["an HTML page instead of a stream", sendsPage],
      ["an error event before any text", reportsErrorAfter("overloaded_error")],
    ];

    test.each(beforeText)("%s is retried", async (_, responder) => {
      const outcome = await callWith(responder, responder, answers("Hello"));
      expect(outcome).toMatchObject({ text: "Hello", end: "stop", attempts: 3, error: undefined });
      expect(usageOf(outcome.outputs)).toMatchObject({ input_tokens: 25, output_tokens: 15 });
    });

    test.each(beforeText)("%s fails after three attempts", async (_, responder) => {
      const { error, outputs, requests } = await callWith(responder);
      expect(errorCode(error)).toBe("provider_unavailable");
      expect(outputs).toEqual([]);
      expect(requests).toHaveLength(3);
    });

    const afterText: [string, Responder][] = [
      ["a missing end", stopsShortAfter("Hel", "lo")],
      ["garbage", sendsGarbageAfter("Hel", "lo")],
      ["an error event", reportsErrorAfter("overloaded_error", "Hel", "lo")],
    ];

    test.each(afterText)(
      "%s after text is not retried, and the text is kept",
      async (_, responder) => {
        const { error, text, end, requests } = await callWith(responder, answers("Hello"));
        expect(errorCode(error)).toBe("provider_unavailable");
        expect({ text, end }).toEqual({ text: "Hello", end: undefined });
        expect(requests).toHaveLength(1);
      },
    );

    test("an answer that breaks off after thoughts is not retried", async () => {
      const { error, text, requests } = await callWith(thinksThenStops, answers("Hello"));
      expect(errorCode(error)).toBe("provider_unavailable");
      expect(text).toBe("");
      expect(requests).toHaveLength(1);
    });

    test("a connection that breaks after text is not retried, and the text is kept", async () => {
      const received = Promise.withResolvers<void>();
      await using provider = await startProvider(
        cutsAfter(received.promise, "Hello"),
        answers("Hello"),
      );
      const call = callModel(createProviderSource(adapters[protocol]), requestTo(provider.url));
      while ((await call.next()).value?.type !== "text");
      received.resolve();
      const error = await call.next().catch((thrown) => thrown);
      expect(errorCode(error)).toBe("provider_unavailable");
      expect(provider.requests).toHaveLength(1);
    });

    test.each([
      ["overloaded_error", "provider_unavailable", 3],
      ["api_error", "provider_unavailable", 3],
      ["rate_limit_error", "provider_rate_limited", 3],
      ["authentication_error", "key_rejected", 1],
      ["invalid_request_error", "provider_refused", 1],
      ["request_too_large", "context_too_long", 1],
    ])("an error event %s fails with %s", async (type, code, attempts) => {
      const { error, requests } = await callWith(reportsErrorAfter(type));
      expect(errorCode(error)).toBe(code);
      expect(requests).toHaveLength(attempts);
    });

    test("a refused connection is retried", async () => {
      const provider = await startProvider(answers("Hello"));
      await provider[Symbol.asyncDispose]();
      const { error, attempts } = await callOutcome(protocol, requestTo(provider.url));
      expect(errorCode(error)).toBe("provider_unavailable");
      expect(attempts).toBe(3);
    });

    test("delays double with each attempt, with jitter", async () => {
      const { delaysMs } = await callProvider(protocol, [fails(500)], {
        retry: { maxAttempts: 5, backoffMs: 100 },
      });
      expect(delaysMs).toHaveLength(4);
      for (const [index, delayMs] of delaysMs.entries()) {
        expect(delayMs).toBeGreaterThanOrEqual(50 * 2 ** index);
        expect(delayMs).toBeLessThanOrEqual(100 * 2 ** index);
      }
    });

    test.each([
      ["retry-after", "7", 7000],
      ["retry-after", "1.5", 1500],
      ["retry-after-ms", "250", 250],
      ["retry-after", "nonsense", 0],
    ])("the header %s: %s is obeyed", async (name, value, askedMs) => {
      const responders = [fails(429, { headers: { [name]: value } }), answers("Hello")];
      const { text, delaysMs } = await callProvider(protocol, responders, {
        retry: { backoffMs: 100 },
      });
      expect(text).toBe("Hello");
      expect(delaysMs).toHaveLength(1);
      expect(delaysMs[0]).toBeGreaterThanOrEqual(askedMs + 50);
      expect(delaysMs[0]).toBeLessThanOrEqual(askedMs + 100);
    });

    test("a date in retry-after is obeyed", async () => {
      const date = new Date(Date.now() + 20_000).toUTCString();
      const outcome = await callWith(
        fails(503, { headers: { "retry-after": date } }),
        answers("Hi"),
      );
      expect(outcome.text).toBe("Hi");
      expect(outcome.delaysMs[0]).toBeGreaterThan(10_000);
      expect(outcome.delaysMs[0]).toBeLessThan(21_000);
    });

    test("a provider that asks for more than 30 seconds is not retried", async () => {
      const { error, requests } = await callWith(fails(429, { headers: { "retry-after": "31" } }));
      expect(errorCode(error)).toBe("provider_rate_limited");
      expect(error).toMatchObject({ retry_after_ms: 31_000 });
      expect(requests).toHaveLength(1);
    });
  });

  describe("timeouts", () => {
    test.each([
      ["before the headers", stallsBeforeHead, { headersMs: 20 }, ""],
      ["after the headers", stallsAfterHead, { firstTokenMs: 20 }, ""],
      ["before any text", stallsAfter(), { firstTokenMs: 20 }, ""],
      ["between two texts", stallsAfter("Hel", "lo"), { idleMs: 2000 }, "Hello"],
    ])(
      "a stall %s ends the call and closes the connection",
      async (_, responder, timeouts, text) => {
        // On a busy machine the time may be over before the request comes: it is made again.
        for (let hasCome = false; !hasCome; ) {
          await using provider = await startProvider(responder);
          const outcome = await callOutcome(protocol, requestTo(provider.url), { timeouts });
          expect(errorCode(outcome.error)).toBe("timeout");
          expect(outcome).toMatchObject({ text, attempts: 1 });
          hasCome = provider.requests.length > 0;
          await provider.requests[0]?.closed;
          expect(provider.requests.length).toBeLessThanOrEqual(1);
        }
      },
    );
  });

  describe("an abort", () => {
    test("before the call makes no request", async () => {
      await using provider = await startProvider(answers("Hello"));
      const signal = AbortSignal.abort(new Error("stopped"));
      const { error } = await callOutcome(protocol, requestTo(provider.url, { signal }));
      expect(error).toBe(signal.reason);
      expect(provider.requests).toEqual([]);
    });

    test("before the headers closes the connection", async () => {
      const stop = new AbortController();
      const reason = new Error("stopped");
      await using provider = await startProvider(({ stall }) => {
        stop.abort(reason);
        return stall();
      });
      const request = requestTo(provider.url, { signal: stop.signal });
      expect(await callOutcome(protocol, request)).toMatchObject({ error: reason, attempts: 1 });
      await provider.requests[0]?.closed;
    });

    test("between texts closes the connection, even while nobody reads", async () => {
      const stop = new AbortController();
      await using provider = await startProvider(stallsAfter("Hel"));
      const request = requestTo(provider.url, { signal: stop.signal });
      const call = callModel(createProviderSource(adapters[protocol]), request);
      while ((await call.next()).value?.type !== "text");
      stop.abort(new Error("stopped"));
      await provider.requests[0]?.closed;
      await expect(call.next()).rejects.toThrow("stopped");
    });

    test("between two attempts prevents the next one", async () => {
      const stop = new AbortController();
      await using provider = await startProvider(fails(429, { headers: { "retry-after": "20" } }));
      const request = requestTo(provider.url, { signal: stop.signal });
      const { error } = await callOutcome(protocol, request, {
        sleep: (ms, signal) => {
          queueMicrotask(() => stop.abort(new Error("stopped")));
          return sleep(ms, signal);
        },
      });
      expect(error).toBe(stop.signal.reason);
      expect(provider.requests).toHaveLength(1);
    });

    test("is implied when the caller stops reading", async () => {
      await using provider = await startProvider(stallsAfter("Hel"));
      for await (const output of callModel(
        createProviderSource(adapters[protocol]),
        requestTo(provider.url),
      ))
        if (output.type === "text") break;
      await provider.requests[0]?.closed;
    });
  });

  describe("a provider that never ends", () => {
    test("is cut off at 16 characters per allowed token", async () => {
      await using provider = await startProvider(neverEnds((frames) => frames.text("word ")));
      const request = requestTo(provider.url, { max_output_tokens: 50 });
      const { text, end } = await callOutcome(protocol, request);
      expect(end).toBe("length");
      expect(text.length).toBeGreaterThanOrEqual(50 * 16);
      expect(text.length).toBeLessThan(50 * 16 + 10);
      await provider.requests[0]?.closed;
    });

    test.each([
      ["thinking", neverEnds((frames) => frames.thinking.repeat(1000))],
      ["comments", neverEnds(() => ": still here\n\n".repeat(1000))],
      ["one event", neverEnds(() => "data: ".repeat(10_000))],
    ])("is cut off when it sends only %s", async (_, responder) => {
      await using provider = await startProvider(responder);
      const { error, attempts } = await callOutcome(protocol, requestTo(provider.url));
      expect(errorCode(error)).toBe("provider_unavailable");
      expect(attempts).toBe(1);
      await provider.requests[0]?.closed;
    });
  });
});

test("a fetch that ignores its signal cannot outlast the timeout", async () => {
  const ignoresSignal = () => new Promise<never>(() => {});
  const options: CallOptions = { fetch: ignoresSignal, timeouts: { headersMs: 20 } };
  const { error } = await callOutcome("openai", requestTo("http://provider.invalid"), options);
  expect(errorCode(error)).toBe("timeout");
});
