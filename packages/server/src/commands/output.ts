import { ConfigError } from "../config/config.ts";
import { Failure } from "../rules/failure.ts";
import { createAuditLog } from "../security/audit-log.ts";
import type { Store } from "../store/store.ts";

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

export const printError = (line: string): void => void process.stderr.write(`${line}\n`);

/** The audit log of a command: its entries are stored, and are no log lines between those of the command. */
export const commandLog = (store: Store) =>
  createAuditLog(
    {
      info() {},
      error: ({ err, event }) =>
        printError(`The audit log has no entry "${event}": it was not stored (${reasonOf(err)}).`),
    },
    store,
  );

/** Without a final full stop: the end or the middle of a sentence. */
export const reasonOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");

/** Prints the error as one sentence for the operator, and exits with status 1. */
export function failWith(error: unknown): never {
  const text = error instanceof Error ? error.message : String(error);
  const message = error instanceof Failure ? text.replace(/^[^:]*: /, "") : text;
  printError(error instanceof ConfigError ? message : `Parley: ${message}`);
  process.exit(1);
}
