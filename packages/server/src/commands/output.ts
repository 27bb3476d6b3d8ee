import { ConfigError } from "../config/config.ts";
import { Failure } from "../rules/failure.ts";

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

export const printError = (line: string): void => void process.stderr.write(`${line}\n`);

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

/** How often a terminal is redrawn. */
const REDRAW_MS = 100;
/** How often a line is written where there is no terminal, such as in the log of a job. */
const LINE_MS = 5000;

export interface ProgressOutput {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/**
 * Shows the progress of long work: on a terminal in one line that is replaced, elsewhere as a line
 * every few seconds, so that short work writes nothing to a log.
 */
export function progressOn(
  output: ProgressOutput,
  now: () => number = performance.now.bind(performance),
) {
  const everyMs = output.isTTY ? REDRAW_MS : LINE_MS;
  let shownAt = output.isTTY ? Number.NEGATIVE_INFINITY : now();
  let isDrawn = false;
  return {
    show(text: string): void {
      if (now() - shownAt < everyMs) return;
      shownAt = now();
      output.write(output.isTTY ? `\r\x1b[K${text}` : `${text}\n`);
      isDrawn = output.isTTY === true;
    },
    /** Removes the line from the terminal, before something else is printed. */
    clear(): void {
      if (isDrawn) output.write("\r\x1b[K");
      isDrawn = false;
    },
  };
}
