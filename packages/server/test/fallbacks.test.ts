import { describe, expect, test } from "bun:test";
import type { ModelRequest } from "../src/agents/providers/adapter.ts";
import { providerErrors } from "../src/agents/providers/provider-errors.ts";
import { fallback } from "../src/agents/turn/fallbacks.ts";

const PICTURE = { type: "image", media_type: "image/png", data: new Uint8Array([1]) } as const;

const request: ModelRequest = {
  base_url: "https://provider.test",
  api_key: "key",
  model: "model",
  system: "",
  max_output_tokens: 100,
  signal: new AbortController().signal,
  tools: [],
  messages: [
    { role: "user", content: [{ type: "text", text: "Look." }, PICTURE] },
    { role: "assistant", content: [{ type: "tool_use", id: "1", name: "find", input: {} }] },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "1",
          content: [{ type: "text", text: "found" }],
          is_error: false,
        },
      ],
    },
  ],
};

/** What is left out, one after the other, while the provider refuses every request. */
function leftOut(error: Error): [string, boolean][] {
  const steps: [string, boolean][] = [];
  let current = request;
  for (let next = fallback(current, error); next; next = fallback(current, error)) {
    current = next.apply(current);
    const seesPicture = current.messages.some(({ content }) =>
      content.some(({ type }) => type === "image"),
    );
    steps.push([next.leftOut, seesPicture]);
  }
  return steps;
}

describe("a refused request", () => {
  test("is made again with calls as text, and pictures are left out last", () => {
    expect(leftOut(providerErrors.requestRefused(400))).toEqual([
      ["calls", true],
      ["files", false],
    ]);
  });

  test("keeps its calls if it is too long, or if they are not the reason", () => {
    const files = [["files", false]];
    expect(leftOut(providerErrors.contextTooLong(400))).toEqual(files as never);
    expect(leftOut(providerErrors.unknownModel(404))).toEqual(files as never);
  });
});
