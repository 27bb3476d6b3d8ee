import { type Config, ConfigError } from "../config.ts";
import { logger } from "../observe/log.ts";
import { securityLog } from "../observe/security-log.ts";

export const print = (line: string) => process.stdout.write(`${line}\n`);

/** Commands log to standard error. Standard output is for their result. */
export const commandLog = ({ logLevel }: Config) => securityLog(logger(logLevel, 2));

/** Prints the error as one sentence for the operator, and exits with status 1. */
export function fail(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`${error instanceof ConfigError ? message : `Parley: ${message}`}\n`);
  process.exit(1);
}
