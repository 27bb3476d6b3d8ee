import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripedPng } from "@parley/testkit/pictures.ts";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { type Responder, startProvider } from "@parley/testkit/provider-server.ts";
import { toolsFolder } from "@parley/testkit/tools.ts";
import type { ModelRequest } from "../src/agents/providers/adapter.ts";
import { callModel } from "../src/agents/providers/call.ts";
import {
  adapters,
  createProviderSource,
  type ProtocolName,
} from "../src/agents/providers/index.ts";
import type { ModelMessage } from "../src/rules/model-content.ts";
import { API_KEY, PROTOCOLS, requestTo } from "./support/model-call.ts";
import { TOOL_PARAMS, TOOL_ROUNDS, TOOLS } from "./support/tool-round.ts";

const png = stripedPng(8, 4, [255, 0, 0]);
const pdf = Buffer.from("%PDF-1.7");

/** A conversation with every kind of file. */
const MESSAGES: ModelMessage[] = [
  {
    role: "user",
    content: [
      { type: "text", text: 'alice: look\n  (file "red.png")' },
      { type: "image", media_type: "image/png", data: png },
      { type: "file", name: "plan.pdf", media_type: "application/pdf", data: pdf },
      { type: "file", name: "notes.txt", media_type: "text/plain", data: Buffer.from("a\nb") },
      { type: "text", text: "bob: what is it?" },
    ],
  },
  { role: "assistant", content: [{ type: "text", text: "Red." }] },
  { role: "user", content: [{ type: "text", text: "bob: thanks" }] },
];

/** The same content, written for the SDKs as their documentation shows it. */
const PARAMS = {
  anthropic: {
    model: "test-model",
    max_tokens: 100,
    stream: true,
    system: "You are a test.",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: 'alice: look\n  (file "red.png")' },
          {
            type: "image",
            source: { type: "base64", media_type: "image/png", data: png.toBase64() },
          },
          {
            type: "document",
            source: { type: "base64", media_type: "application/pdf", data: pdf.toBase64() },
            title: "plan.pdf",
          },
          {
            type: "document",
            source: { type: "text", media_type: "text/plain", data: "a\nb" },
            title: "notes.txt",
          },
          { type: "text", text: "bob: what is it?" },
        ],
      },
      { role: "assistant", content: "Red." },
      { role: "user", content: "bob: thanks" },
    ],
  },
  openai: {
    model: "test-model",
    max_tokens: 100,
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: "system", content: "You are a test." },
      {
        role: "user",
        content: [
          { type: "text", text: 'alice: look\n  (file "red.png")' },
          {
            type: "image_url",
            image_url: { url: `data:image/png;base64,${png.toBase64()}` },
          },
          {
            type: "file",
            file: {
              filename: "plan.pdf",
              file_data: `data:application/pdf;base64,${pdf.toBase64()}`,
            },
          },
          { type: "text", text: 'File "notes.txt" (text/plain, 3 bytes):\n  a\n  b' },
          { type: "text", text: "bob: what is it?" },
        ],
      },
      { role: "assistant", content: "Red." },
      { role: "user", content: "bob: thanks" },
    ],
  },
} satisfies Record<ProtocolName, object>;

interface Client {
  messages: {
    create(params: object): Promise<unknown>;
    stream(params: object): { finalMessage(): Promise<AnthropicMessage> };
  };
  chat: {
    completions: {
      create(params: object): Promise<unknown>;
      stream(params: object): { finalMessage(): Promise<OpenAIMessage> };
    };
  };
}
interface AnthropicMessage {
  content: { type: string; id: string; name: string; input: unknown }[];
}
interface OpenAIMessage {
  tool_calls: { id: string; function: { name: string; arguments: string } }[];
}
type Sdk = { default: new (options: object) => Client };

const importSdk = (path: string): Promise<Sdk> => import(join(toolsFolder(), path));

/** Requests as our adapters take them, and the same for the SDKs. */
const REQUESTS = {
  "with files": { ours: { messages: MESSAGES }, official: PARAMS },
  "with tool calls": {
    ours: { messages: TOOL_ROUNDS, tools: TOOLS },
    official: {
      anthropic: { ...PARAMS.anthropic, ...TOOL_PARAMS.anthropic },
      openai: { ...PARAMS.openai, ...TOOL_PARAMS.openai },
    },
  },
} satisfies Record<string, { ours: Partial<ModelRequest>; official: Record<ProtocolName, object> }>;

const anthropicClient = async (baseURL: string) => {
  const { default: Anthropic } = await importSdk("@anthropic-ai/sdk/index.mjs");
  return new Anthropic({ apiKey: API_KEY, baseURL, maxRetries: 0 });
};
const openaiClient = async (url: string) => {
  const { default: OpenAI } = await importSdk("openai/index.mjs");
  return new OpenAI({ apiKey: API_KEY, baseURL: `${url}/v1`, maxRetries: 0 });
};

/** Sends a request with the official SDK of a protocol. */
const sendWithSdk: Record<ProtocolName, (url: string, params: object) => Promise<unknown>> = {
  anthropic: async (url, params) => (await anthropicClient(url)).messages.create(params),
  openai: async (url, params) => (await openaiClient(url)).chat.completions.create(params),
};

/** Reads the tool calls of an answer with the official SDK of a protocol. */
const callsWithSdk: Record<ProtocolName, (url: string) => Promise<object[]>> = {
  async anthropic(url) {
    const { messages } = await anthropicClient(url);
    const { content } = await messages
      .stream(REQUESTS["with tool calls"].official.anthropic)
      .finalMessage();
    return content
      .filter(({ type }) => type === "tool_use")
      .map(({ id, name, input }) => ({ type: "tool_use", id, name, input }));
  },
  async openai(url) {
    const { completions } = (await openaiClient(url)).chat;
    const { tool_calls } = await completions
      .stream(REQUESTS["with tool calls"].official.openai)
      .finalMessage();
    return tool_calls.map(({ id, function: { name, arguments: json } }) => ({
      type: "tool_use",
      id,
      name,
      input: JSON.parse(json),
    }));
  },
};

/**
 * Since 1.0.0 Anthropic's SDK asks for the API version 2026-10-21 and sends the key as a bearer
 * token. The adapter asks for 2023-06-01, with the header of that version: files and tools have the
 * same form in both.
 */
const HEADERS = {
  anthropic: {
    official: { "anthropic-version": "2026-10-21", authorization: `Bearer ${API_KEY}` },
    ours: { "anthropic-version": "2023-06-01", "x-api-key": API_KEY },
  },
  openai: {
    official: { authorization: `Bearer ${API_KEY}` },
    ours: { authorization: `Bearer ${API_KEY}` },
  },
} satisfies Record<ProtocolName, object>;

describe.each(PROTOCOLS)("a request in the %s protocol", (protocol) => {
  test.each(Object.entries(REQUESTS))("%s is what the official SDK sends", async (_, request) => {
    await using provider = await startProvider(answers("Hello."));
    const params = request.official[protocol];
    await sendWithSdk[protocol](provider.url, params);
    await Array.fromAsync(
      callModel(createProviderSource(adapters[protocol]), requestTo(provider.url, request.ours)),
    );
    const [official, ours] = provider.requests;
    expect(official?.body).toEqual({ ...params });
    expect(ours?.body).toEqual(official?.body ?? {});
    for (const field of ["method", "path"] as const)
      expect(ours?.[field]).toBe(official?.[field] ?? "");
    expect(ours?.headers["content-type"]).toBe(official?.headers["content-type"] ?? "");
    expect(official?.headers).toMatchObject(HEADERS[protocol].official);
    expect(ours?.headers).toMatchObject(HEADERS[protocol].ours);
  });
});

describe.each(PROTOCOLS)("tool calls in the %s protocol", (protocol) => {
  const documented = new URL(`fixtures/tool-use.${protocol}.sse`, import.meta.url);
  test.each<[string, Responder]>([
    [
      "the documented stream",
      async ({ head, write, end }) => {
        await head(200);
        await write(await Bun.file(documented).text());
        await end();
      },
    ],
    [
      "the test provider",
      toolCalls(
        [
          { id: "call_1", name: "get_weather", input: { location: "Rome" } },
          { id: "call_2", name: "get_time" },
        ],
        "Let me look.",
      ),
    ],
  ])("of %s are those that the official SDK reads", async (_, responder) => {
    await using provider = await startProvider(responder);
    const official = await callsWithSdk[protocol](provider.url);
    const outputs = await Array.fromAsync(
      callModel(createProviderSource(adapters[protocol]), requestTo(provider.url)),
    );
    expect(official).toHaveLength(2);
    expect<object[]>(outputs.filter(({ type }) => type === "tool_use")).toEqual(official);
  });
});

test("the requests have the types that the official SDKs declare", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-sdk-types-"));
  try {
    symlinkSync(toolsFolder(), join(folder, "node_modules"));
    writeFileSync(join(folder, "requests.ts"), typedRequests());
    const tsc = new URL("../../../node_modules/.bin/tsc", import.meta.url).pathname;
    const options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext"];
    const child = Bun.spawn([tsc, ...options, "--types", "", "requests.ts"], { cwd: folder });
    expect({ output: await child.stdout.text(), code: await child.exited }).toEqual({
      output: "",
      code: 0,
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

function typedRequests(): string {
  const bodies = (protocol: ProtocolName) => {
    const { request } = adapters[protocol];
    const sent = Object.values(REQUESTS).map(({ ours }) =>
      request(requestTo("https://provider.invalid", ours)),
    );
    return sent.map(({ body }) => body).join(",");
  };
  return `import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
export const anthropic: Anthropic.MessageCreateParamsStreaming[] = [${bodies("anthropic")}];
export const openai: OpenAI.Chat.Completions.ChatCompletionCreateParamsStreaming[] = [${bodies("openai")}];
`;
}
