import type { AdapterOutput } from "./adapter.ts";
import { providerErrors } from "./provider-errors.ts";

/** What the wire protocols have in common. Values that a provider sent are untrusted. */

/** Appends to the path of a base URL, which `withVersion` completes, and keeps its query. */
export function endpointUrl(
  baseUrl: string,
  withVersion: (basePath: string) => string,
  path: string,
): URL {
  const url = new URL(baseUrl);
  url.pathname = `${withVersion(url.pathname.replace(/\/+$/, ""))}${path}`;
  return url;
}

/** The API key as a header value, without the whitespace that copying may add around it. */
export function keyHeader(apiKey: string): string {
  const key = apiKey.trim();
  if (!/^[\x21-\x7e]+$/.test(key)) throw providerErrors.malformedKey();
  return key;
}

export const streamHeaders = {
  "content-type": "application/json",
  accept: "text/event-stream",
} as const;

/** What both APIs reject at the top level. The tool itself checks its arguments. */
const REJECTED = new Set(["$schema", "oneOf", "anyOf", "allOf", "not", "enum"]);

/** A schema of tool arguments in the form that both APIs accept: an object with properties. */
export const objectSchema = (schema: Readonly<Record<string, unknown>>): object => ({
  properties: {},
  ...Object.fromEntries(Object.entries(schema).filter(([key]) => !REJECTED.has(key))),
  type: "object",
});

export function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    // The parser's error is dropped because it quotes what the provider wrote.
    throw providerErrors.incompleteAnswer();
  }
}

/** The value at a path of untrusted JSON, or undefined where the shape differs. */
export function valueAt(value: unknown, ...path: (string | number)[]): unknown {
  let found = value;
  for (const key of path) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as Record<string | number, unknown>)[key];
  }
  return found;
}

export const textOutputs = (text: unknown): AdapterOutput[] =>
  typeof text === "string" && text !== "" ? [{ type: "text", text }] : [];

export const thinkingOutput = (text: unknown): AdapterOutput => ({
  type: "thinking",
  text: typeof text === "string" ? text : "",
});

/** None if neither number is a count of tokens. */
export function usageOutputs(input: unknown, output: unknown): AdapterOutput[] {
  const [input_tokens, output_tokens] = [tokenCount(input), tokenCount(output)];
  if (input_tokens === undefined && output_tokens === undefined) return [];
  return [
    {
      type: "usage",
      ...(input_tokens !== undefined && { input_tokens }),
      ...(output_tokens !== undefined && { output_tokens }),
    },
  ];
}

export const tokenCount = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
