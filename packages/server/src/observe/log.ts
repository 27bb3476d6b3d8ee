import pino from "pino";

export type Logger = pino.Logger;

/** The input of a failed `new URL` may contain a token. */
const redact = { paths: ["err.input", "err.cause.input"], remove: true };

/** Logs JSON lines to standard output, or to standard error for commands. Never log what a user typed. */
export const createLogger = (level: string, descriptor: 1 | 2 = 1): Logger =>
  pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, redact },
    pino.destination({ dest: descriptor, sync: true }),
  );
