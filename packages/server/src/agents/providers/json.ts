import { providerErrors } from "./provider-errors.ts";

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
