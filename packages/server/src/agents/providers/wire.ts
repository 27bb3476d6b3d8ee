import { failures } from "./failures.ts";
import type { WireEvent } from "./provider.ts";

/** Appends a path to a base URL, keeping the path and the query it has. */
export function endpoint(baseUrl: string, path: (basePath: string) => string): URL {
  const url = new URL(baseUrl);
  url.pathname = path(url.pathname.replace(/\/+$/, ""));
  return url;
}

/** A key as a header can carry it; a stray line break from copying is forgiven. */
export function headerKey(apiKey: string): string {
  const key = apiKey.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw failures.malformedKey();
  return key;
}

export function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    // The parser's own message quotes what the provider wrote.
    throw failures.brokenOff();
  }
}

/** The value at a path of JSON from outside, or undefined wherever its shape differs. */
export function dig(value: unknown, ...path: (string | number)[]): unknown {
  let found = value;
  for (const step of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as Record<string | number, unknown>)[step];
  }
  return found;
}

export const tokenCount = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;

export function textEvents(text: unknown): WireEvent[] {
  return typeof text === "string" && text !== "" ? [{ type: "text", text }] : [];
}

export function usageEvents(input: number | undefined, output: number | undefined): WireEvent[] {
  if (input === undefined && output === undefined) return [];
  return [
    {
      type: "usage",
      ...(input === undefined ? {} : { input_tokens: input }),
      ...(output === undefined ? {} : { output_tokens: output }),
    },
  ];
}
