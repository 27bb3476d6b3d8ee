import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripedPng } from "@parley/testkit/pictures.ts";
import { answers } from "@parley/testkit/provider-responders.ts";
import { startProvider } from "@parley/testkit/provider-server.ts";
import { toolsFolder } from "@parley/testkit/tools.ts";
import { callModel } from "../src/agents/providers/call.ts";
import { adapters, type ProtocolName } from "../src/agents/providers/index.ts";
import type { ModelMessage } from "../src/rules/model-content.ts";
import { API_KEY, PROTOCOLS, requestTo } from "./support/model-call.ts";

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
  messages: { create(params: object): Promise<unknown> };
  chat: { completions: { create(params: object): Promise<unknown> } };
}
type Sdk = { default: new (options: object) => Client };

const importSdk = (path: string): Promise<Sdk> => import(join(toolsFolder(), path));

/** Sends a request with the official SDK of a protocol. */
const sendWithSdk: Record<ProtocolName, (url: string) => Promise<unknown>> = {
  async anthropic(baseURL) {
    const { default: Anthropic } = await importSdk("@anthropic-ai/sdk/index.mjs");
    const client = new Anthropic({ apiKey: API_KEY, baseURL, maxRetries: 0 });
    return client.messages.create(PARAMS.anthropic);
  },
  async openai(url) {
    const { default: OpenAI } = await importSdk("openai/index.mjs");
    const client = new OpenAI({ apiKey: API_KEY, baseURL: `${url}/v1`, maxRetries: 0 });
    return client.chat.completions.create(PARAMS.openai);
  },
};

/**
 * Since 1.0.0 Anthropic's SDK asks for the API version 2026-10-21 and sends the key as a bearer
 * token. The adapter asks for 2023-06-01, with the header of that version: files have the same form
 * in both.
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

describe.each(PROTOCOLS)("a request with files in the %s protocol", (protocol) => {
  test("has the path and the body that the official SDK sends", async () => {
    await using provider = await startProvider(answers("Hello."));
    await sendWithSdk[protocol](provider.url);
    const request = requestTo(provider.url, { messages: MESSAGES });
    await Array.fromAsync(callModel(adapters[protocol], request));
    const [official, ours] = provider.requests;
    expect(official?.body).toEqual(PARAMS[protocol]);
    expect(ours?.body).toEqual(official?.body ?? {});
    for (const field of ["method", "path"] as const)
      expect(ours?.[field]).toBe(official?.[field] ?? "");
    expect(ours?.headers["content-type"]).toBe(official?.headers["content-type"] ?? "");
    expect(official?.headers).toMatchObject(HEADERS[protocol].official);
    expect(ours?.headers).toMatchObject(HEADERS[protocol].ours);
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
  const bodyOf = (protocol: ProtocolName) =>
    adapters[protocol].request(requestTo("https://provider.invalid", { messages: MESSAGES })).body;
  return `import type Anthropic from "@anthropic-ai/sdk";
import type OpenAI from "openai";
export const anthropic: Anthropic.MessageCreateParamsStreaming = ${bodyOf("anthropic")};
export const openai: OpenAI.Chat.Completions.ChatCompletionCreateParamsStreaming = ${bodyOf("openai")};
`;
}
