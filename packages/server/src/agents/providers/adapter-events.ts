import type { AdapterEvent } from "./adapter.ts";

/** Builds adapter events from untrusted values: what has the wrong type yields no event. */

export const textEvents = (text: unknown): AdapterEvent[] =>
  typeof text === "string" && text !== "" ? [{ type: "text", text }] : [];

export const thinkingEvent = (text: unknown): AdapterEvent => ({
  type: "thinking",
  text: typeof text === "string" ? text : "",
});

export function usageEvents(input: number | undefined, output: number | undefined): AdapterEvent[] {
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
