import { existsSync, readFileSync } from "node:fs";
import { ConfigError, fileProblem } from "./error.ts";

/** Reads a file that a setting names. */
export function readNamedFile(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new ConfigError(
      `${setting} names "${file}", which cannot be read: ${fileProblem(error)}.`,
    );
  }
}

/** Parses a setting that is JSON, or the path of a file with it. Errors repeat no value: it may have secrets. */
export function readJson(setting: string, value: string, kind: "object" | "list"): unknown {
  if (value.trimStart().startsWith(kind === "object" ? "{" : "[")) return parseJson(setting, value);
  if (existsSync(value)) return parseJson(setting, readNamedFile(setting, value));
  const isJson = /^\s*[[{]/.test(value);
  const problem = isJson ? "" : " or the path of a file with one, and no file has this path";
  throw new ConfigError(`${setting} must be a JSON ${kind}${problem}.`);
}

/** Parses the value of a setting. */
export function parseJson(setting: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    // What the parser says may quote a secret.
    throw new ConfigError(`${setting} is not valid JSON: check its quotes, commas and brackets.`);
  }
}
