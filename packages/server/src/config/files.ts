import { readFileSync } from "node:fs";
import { ConfigError } from "./error.ts";

/** Reads a file that a setting names. */
export function readNamedFile(setting: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new ConfigError(`${setting} names "${file}", which cannot be read as a file.`);
  }
}

/** Parses the value of a setting. */
export function parseJson(setting: string, value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    throw new ConfigError(`${setting} is not valid JSON.`);
  }
}
