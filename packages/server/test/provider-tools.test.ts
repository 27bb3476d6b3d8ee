import { describe, expect, test } from "bun:test";
import { LLMock } from "@copilotkit/aimock";
import { framesOf, type SentCall } from "@parley/testkit/provider-frames.ts";
import {
  answers,
  cutsOffCalls,
  endsWith,
  fails,
  neverEnds,
  toolCalls,
} from "@parley/testkit/provider-responders.ts";
import type { Responder } from "@parley/testkit/provider-server.ts";
import fc from "fast-check";
import type { ModelOutput } from "../src/agents/providers/adapter.ts";
import { adapters, type ProtocolName } from "../src/agents/providers/index.ts";
import type { ModelMessage } from "../src/rules/model-content.ts";
import {
  callOutcome,
  callProvider,
  errorCode,
  PROTOCOLS,
  requestTo,
  usageOf,
} from "./support/model-call.ts";

const WEATHER = {
  name: "get_weather",
  description: "The weather at a place.",
  input_schema: { type: "object", properties: { location: { type: "string" } } },
};

const callsOf = (outputs: ModelOutput[]) => outputs.filter((output) => output.type === "tool_use");
/** Without usage and thoughts. */
const visible = (outputs: ModelOutput[]) =>
  outputs.filter(({ type }) => type !== "usage" && type !== "thinking");

/** Sends frames of a protocol as they are. */
const sends =
  (frames: string): Responder =>
  async ({ head, write, end }) => {
    await head(200);
    await write(frames);
    await end();
  };

/** A stream as the documentation of the protocol shows it. */
const documented = (protocol: ProtocolName) =>
  Bun.file(new URL(`fixtures/tool-use.${protocol}.sse`, import.meta.url)).text();

/** The events of one call whose arguments come in these pieces. */
const argumentEvents: Record<ProtocolName, (pieces: string[]) => object[]> = {
  anthropic: (pieces) => [
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "1", name: "a" },
    },
    ...pieces.map((partial_json) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "input_json_delta", partial_json },
    })),
    { type: "content_block_stop", index: 0 },
  ],
  openai: (pieces) => [
    ...["", ...pieces].map((text, index) => ({
      choices: [
        {
          delta: {
            tool_calls: [
              {
                index: 0,
                ...(index === 0 && { id: "1" }),
                function: { ...(index === 0 && { name: "a" }), arguments: text },
              },
            ],
          },
        },
      ],
    })),
    { choices: [{ delta: {}, finish_reason: "tool_calls" }] },
  ],
};

describe.each(PROTOCOLS)("tool calls in the %s protocol", (protocol) => {
  const callWith = (...responders: Responder[]) => callProvider(protocol, responders);
  const weatherCall: SentCall = { id: "call_1", name: "get_weather", input: { location: "Rome" } };

  test("are read from the documented stream, one byte at a time", async () => {
    const stream = Buffer.from(await documented(protocol));
    const { text, outputs, end, error } = await callWith(async ({ head, write, end }) => {
      await head(200);
      for (const byte of stream) await write(Uint8Array.of(byte));
      await end();
    });
    expect(error).toBeUndefined();
    expect(text).toStartWith("Okay, let's check the weather for San Francisco:");
    expect(callsOf(outputs)).toEqual([
      {
        type: "tool_use",
        id: expect.stringMatching(/^(toolu|call)_/),
        name: "get_weather",
        input: { location: "San Francisco, CA", unit: "fahrenheit" },
      },
      { type: "tool_use", id: expect.any(String), name: "get_time", input: {} },
    ]);
    expect(end).toBe("tool_use");
    expect(usageOf(outputs).output_tokens).toBeGreaterThan(40);
  });

  test("come after the text before them, then the end", async () => {
    const { outputs } = await callWith(
      toolCalls([weatherCall, { name: "get_time" }], "Let me ", "look."),
    );
    const shown = visible(outputs);
    const texts = shown.filter(({ type }) => type === "text");
    expect(shown.slice(texts.length)).toEqual([
      { type: "tool_use", id: "call_1", name: "get_weather", input: { location: "Rome" } },
      { type: "tool_use", id: expect.any(String), name: "get_time", input: {} },
      { type: "end", reason: "tool_use" },
    ]);
  });

  test("need no text", async () => {
    const { outputs, error } = await callWith(toolCalls([weatherCall]));
    expect(error).toBeUndefined();
    expect(visible(outputs).map(({ type }) => type)).toEqual(["tool_use", "end"]);
  });

  test.each([
    ["not JSON", "{location:"],
    ["a list", "[1]"],
    ["a number", "1"],
    ["null", "null"],
    ["cut off", '{"location": "Ro'],
    ["nested very deep", `{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`],
    ["nested too deep", `{"a":${"[".repeat(33)}${"]".repeat(33)}}`],
  ])("have null as input if the arguments are %s", async (_, input) => {
    const { outputs, end } = await callWith(toolCalls([{ name: "get_weather", input }]));
    expect(callsOf(outputs)).toMatchObject([{ name: "get_weather", input: null }]);
    expect(end).toBe("tool_use");
  });

  test("have the same input wherever their arguments are cut into pieces", () => {
    const input = fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue({ maxDepth: 3 }));
    fc.assert(
      fc.property(input, fc.array(fc.nat(200), { maxLength: 5 }), (given, cuts) => {
        const json = JSON.stringify(given);
        const ends = [...cuts, json.length].sort((a, b) => a - b);
        const pieces = ends.map((end, index) => json.slice(ends[index - 1] ?? 0, end));
        const parse = adapters[protocol].parser();
        const outputs = argumentEvents[protocol](pieces).flatMap((event) =>
          parse(JSON.stringify(event)),
        );
        const calls = outputs.filter(({ type }) => type === "tool_use");
        expect(calls).toEqual([{ type: "tool_use", id: "1", name: "a", input: JSON.parse(json) }]);
      }),
    );
  });

  test("have replacement characters for what a store cannot keep", async () => {
    const input = { "a\0": ["\ud83e", "🦜", "\\u0000", '"\\\ud83e'] };
    const { outputs } = await callWith(toolCalls([{ name: "a.b c", input }]));
    expect(callsOf(outputs)).toMatchObject([
      { name: "a_b_c", input: { "a\ufffd": ["\ufffd", "🦜", "\\u0000", '"\\\ufffd'] } },
    ]);
  });

  test("have different ids, also if the provider sends none or the same", async () => {
    const ids = ["", "same", "same", "with space", "é"];
    const { outputs } = await callWith(toolCalls(ids.map((id) => ({ id, name: "get_time" }))));
    const found = callsOf(outputs).map(({ id }) => id);
    expect(found).toHaveLength(ids.length);
    expect(new Set(found).size).toBe(ids.length);
    expect(found[1]).toBe("same");
    for (const id of found) expect(id).toMatch(/^[\w-]+$/);
  });

  test.each(['{"location": "R', ""])(
    "that the token limit cuts off end with length: %j",
    async (input) => {
      const sent = [
        { name: "get_time", input: "" },
        { name: "get_weather", input },
      ];
      const { outputs, end } = await callWith(cutsOffCalls(sent));
      expect(callsOf(outputs)).toMatchObject([
        { name: "get_time", input: {} },
        { name: "get_weather", input: null },
      ]);
      expect(end).toBe("length");
    },
  );

  test("that are complete when the token limit is reached have their input", async () => {
    const { outputs } = await callWith(cutsOffCalls([{ name: "get_time", input: "{}" }]));
    expect(callsOf(outputs)).toMatchObject([{ name: "get_time", input: {} }]);
  });

  test("without arguments have an empty object as input", async () => {
    const { outputs } = await callWith(toolCalls([{ name: "get_time", input: "" }]));
    expect(callsOf(outputs)).toEqual([
      { type: "tool_use", id: expect.any(String), name: "get_time", input: {} },
    ]);
  });

  test("are refused beyond 32 in an answer", async () => {
    const many = (count: number) => Array.from({ length: count }, () => ({ name: "get_time" }));
    expect(callsOf((await callWith(toolCalls(many(32)))).outputs)).toHaveLength(32);
    const { error, attempts } = await callWith(toolCalls(many(33)));
    expect(errorCode(error)).toBe("provider_unavailable");
    expect(attempts).toBe(1);
  });

  test("are refused beyond 256 KiB of arguments together", async () => {
    const filled = (bytes: number) => ({ name: "write", input: { a: "é".repeat(bytes / 2) } });
    const half = 128 << 10;
    const fitting = await callWith(toolCalls([filled(half), filled(half - 32)]));
    expect(callsOf(fitting.outputs)).toHaveLength(2);
    const { error } = await callWith(toolCalls([filled(half), filled(half)]));
    expect(errorCode(error)).toBe("provider_unavailable");
    const endless = await callWith(neverEnds((frames) => frames.toolCalls([filled(1 << 10)])));
    expect(errorCode(endless.error)).toBe("provider_unavailable");
  });

  const firstPieces = framesOf[protocol]
    .toolCalls([weatherCall])
    .split(/(?<=\n\n)/)
    .slice(0, 3);

  test("that break off before they are complete are not retried", async () => {
    const { outputs, error, attempts } = await callWith(
      sends(firstPieces.join("")),
      toolCalls([weatherCall]),
    );
    expect(errorCode(error)).toBe("provider_unavailable");
    expect(callsOf(outputs)).toEqual([]);
    expect(attempts).toBe(1);
  });

  test("count as progress while their arguments arrive: the idle timeout applies", async () => {
    const stalls: Responder = async ({ head, write, stall }) => {
      await head(200);
      for (const piece of firstPieces) await write(piece);
      await stall();
    };
    const { error } = await callProvider(protocol, [stalls], { timeouts: { idleMs: 20 } });
    expect(errorCode(error)).toBe("timeout");
  });

  test.each([400, 422])("a refusal of the tools (%d) has a code", async (status) => {
    const { error, outputs } = await callWith(fails(status, { type: "invalid_request_error" }));
    expect(errorCode(error)).toBe("provider_refused");
    expect(error).toMatchObject({ status, retryable: false });
    expect(outputs).toEqual([]);
  });

  test.each([
    [400, "registry.ollama.ai/library/gemma:latest does not support tools"],
    [404, "No endpoints found that support tool use. To learn more about provider routing, …"],
    [400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'],
    [500, "tools param requires --jinja flag"],
    [500, "Unsupported param: tools"],
  ])("a model without tools is recognised (%d, %s)", async (status, message) => {
    const { error, attempts } = await callWith(fails(status, { type: "server_error", message }));
    expect(errorCode(error)).toBe("provider_refused");
    expect(error).toMatchObject({ status, message: expect.stringContaining("cannot use tools") });
    expect(attempts).toBe(1);
  });

  test("an answer without calls ends as before", async () => {
    expect((await callWith(answers("Hello"))).end).toBe("stop");
    expect((await callWith(endsWith("length", "Hel"))).end).toBe("length");
  });

  test("agree with aimock's implementation of the protocol, over two rounds", async () => {
    const mock = new LLMock({ port: 0, chunkSize: 5 });
    mock.onToolResult("call_weather", { content: "It is sunny in Rome." });
    mock.onMessage("weather", {
      content: "Let me look.",
      toolCalls: [
        { id: "call_weather", name: "get_weather", arguments: '{"location":"Rome"}' },
        { id: "call_time", name: "get_time", arguments: "{}" },
      ],
    });
    await mock.start();
    try {
      const asked: ModelMessage = {
        role: "user",
        content: [{ type: "text", text: "alice: weather?" }],
      };
      const tools = [WEATHER];
      const first = await callOutcome(protocol, requestTo(mock.url, { messages: [asked], tools }));
      expect(first).toMatchObject({ text: "Let me look.", end: "tool_use", error: undefined });
      const calls = callsOf(first.outputs);
      expect(calls).toMatchObject([
        { id: "call_weather", name: "get_weather", input: { location: "Rome" } },
        { id: "call_time", name: "get_time", input: {} },
      ]);
      const messages: ModelMessage[] = [
        asked,
        {
          role: "assistant",
          content: [
            { type: "text", text: first.text },
            ...calls.map((call) => ({ ...call, input: call.input ?? {} })),
          ],
        },
        {
          role: "user",
          content: calls.toReversed().map(({ id }) => ({
            type: "tool_result",
            tool_use_id: id,
            content: [{ type: "text", text: "sunny" }],
            is_error: false,
          })),
        },
      ];
      const second = await callOutcome(protocol, requestTo(mock.url, { messages, tools }));
      expect(second).toMatchObject({ text: "It is sunny in Rome.", end: "stop" });
    } finally {
      await mock.stop();
    }
  });
});

test("anthropic: text between calls keeps its place", async () => {
  const stream = await documented("anthropic");
  const { outputs } = await callProvider("anthropic", [sends(stream)]);
  const order: string[] = [];
  for (const { type } of visible(outputs)) if (order.at(-1) !== type) order.push(type);
  expect(order).toEqual(["text", "tool_use", "text", "tool_use", "end"]);
});

test("anthropic: a server may send the input at once, and no end of the block", async () => {
  const block = {
    type: "tool_use",
    id: "a",
    name: "get_weather",
    input: { location: "Rome" },
  } as const;
  const frames = [
    { type: "content_block_start", index: 0, content_block: block },
    {
      type: "content_block_delta",
      index: 7,
      delta: { type: "input_json_delta", partial_json: "{" },
    },
    { type: "message_delta", delta: { stop_reason: "tool_use" } },
  ];
  const stream = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("");
  const { outputs, end } = await callProvider("anthropic", [sends(stream)]);
  expect(callsOf(outputs)).toEqual([block]);
  expect(end).toBe("tool_use");
});

describe("servers that differ from OpenAI", () => {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ delta, finish_reason }] })}\n\n`;
  const fn = (name: string | undefined, args: unknown) => ({ function: { name, arguments: args } });
  const rome = '{"city":"Rome"}';

  /** The calls of an answer whose deltas are each in a chunk of their own. */
  async function callsFrom(deltas: object[], finish: string | null = "tool_calls") {
    const chunks = deltas.map((delta) => chunk({ tool_calls: [delta] })).join("");
    const stream = `${chunks}${finish === null ? "" : chunk({}, finish)}data: [DONE]\n\n`;
    const { outputs, end } = await callProvider("openai", [sends(stream)]);
    expect(end).toBe("tool_use");
    return callsOf(outputs).map(({ name, input }) => [name, input]);
  }
  const bothCities = [
    ["a", { city: "Rome" }],
    ["b", { city: "Oslo" }],
  ];

  test.each<[string, object[]]>([
    [
      "omit the index",
      [
        { id: "1", ...fn("a", rome) },
        { id: "2", ...fn("b", '{"city":"Oslo"}') },
      ],
    ],
    ["omit the index and the id", [fn("a", rome), fn("b", '{"city":"Oslo"}')]],
    ["send arguments as objects", [fn("a", { city: "Rome" }), fn("b", { city: "Oslo" })]],
    [
      "give all calls the same index",
      [
        { index: 0, id: "1", ...fn("a", rome) },
        { index: 0, id: "2", ...fn("b", '{"city":"Oslo"}') },
      ],
    ],
    [
      "omit the id and repeat the name",
      [
        { index: 0, ...fn("a", '{"city"') },
        { index: 0, ...fn("a", ':"Rome"}') },
        { index: 1, ...fn("b", '{"city"') },
        { index: 1, ...fn("b", ':"Oslo"}') },
      ],
    ],
    [
      "send another id with each fragment",
      [
        { index: 0, id: "1", ...fn("a", '{"city"') },
        { index: 0, id: "2", ...fn(undefined, ':"Rome"}') },
        { index: 1, id: "3", ...fn("b", '{"city"') },
        { index: 1, id: "4", ...fn(undefined, ':"Oslo"}') },
      ],
    ],
    [
      "omit the index of later fragments",
      [
        { id: "1", ...fn("a", '{"city"') },
        fn(undefined, ':"Rome"}'),
        { id: "2", ...fn("b", '{"city"') },
        { id: "2", ...fn("", ':"Oslo"}') },
      ],
    ],
    [
      "interleave the fragments of two calls",
      [
        { index: 0, id: "1", ...fn("a", '{"city"') },
        { index: 1, id: "2", ...fn("b", '{"city"') },
        { index: 0, ...fn(undefined, ':"Rome"}') },
        { index: 1, ...fn(undefined, ':"Oslo"}') },
      ],
    ],
  ])("may %s", async (_, deltas) => {
    expect(await callsFrom(deltas)).toEqual(bothCities);
  });

  test("may end with stop, or only with the last event", async () => {
    expect(await callsFrom([fn("a", rome)], "stop")).toEqual([["a", { city: "Rome" }]]);
    expect(await callsFrom([fn("a", rome)], null)).toEqual([["a", { city: "Rome" }]]);
  });

  test("may send the whole answer in one chunk", async () => {
    const tool_calls = [fn("a", rome), fn("b", '{"city":"Oslo"}')];
    const stream = chunk({ content: "Look:", tool_calls }, "tool_calls");
    const { outputs, text } = await callProvider("openai", [sends(stream)]);
    expect(text).toBe("Look:");
    expect(callsOf(outputs).map(({ name, input }) => [name, input])).toEqual(bothCities);
  });

  test("may send values of wrong types without harm", async () => {
    const deltas = [null, 1, "x", [], { function: 1 }, { index: "a", id: 1, function: null }];
    const { error } = await callProvider("openai", [
      sends(chunk({ tool_calls: deltas }) + chunk({ tool_calls: "no" }, "tool_calls")),
    ]);
    expect(error).toBeUndefined();
  });
});
