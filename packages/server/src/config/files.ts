import { readFileSync } from "node:fs";
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

/** Parses the value of a setting. */
export function parseJson(setting: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    // What the parser says may quote a secret.
    throw new ConfigError(`${setting} is not valid JSON: check its quotes, commas and brackets.`);
  }
}
