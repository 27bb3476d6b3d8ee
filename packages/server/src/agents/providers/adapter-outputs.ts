import type { AdapterOutput } from "./adapter.ts";

/** Builds outputs of an adapter from untrusted values: what has the wrong type yields none. */

export const textOutputs = (text: unknown): AdapterOutput[] =>
  typeof text === "string" && text !== "" ? [{ type: "text", text }] : [];

export const thinkingOutput = (text: unknown): AdapterOutput => ({
  type: "thinking",
  text: typeof text === "string" ? text : "",
});

export function usageOutputs(
  input: number | undefined,
  output: number | undefined,
): AdapterOutput[] {
  if (input === undefined && output === undefined) return [];
  return [
    {
      type: "usage",
      ...(input === undefined ? {} : { input_tokens: input }),
      ...(output === undefined ? {} : { output_tokens: output }),
    },
  ];
}

export const tokenCount = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
