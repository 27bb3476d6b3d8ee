import { type Config, ConfigError } from "../config/config.ts";
import { createLogger } from "../observe/log.ts";
import { createAuditLog } from "../security/audit-log.ts";
import type { Store } from "../store/store.ts";

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

export const printError = (line: string): void => void process.stderr.write(`${line}\n`);

/**
 * The audit log of a command: its entries are stored, and not printed between the lines of the command.
 * Only an entry that could not be stored is logged, to standard error.
 */
export const commandLog = ({ logLevel }: Config, store: Store) =>
  createAuditLog(createLogger(logLevel === "silent" ? logLevel : "error", 2), store);

/** Prints the error as one sentence for the operator, and exits with status 1. */
export function failWith(error: unknown): never {
  const message = error instanceof Error ? error.message : String(error);
  printError(error instanceof ConfigError ? message : `Parley: ${message}`);
  process.exit(1);
}
