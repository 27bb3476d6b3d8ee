import pino from "pino";

export type Logger = pino.Logger;

/** The input of a failed `new URL` may contain a token. */
const redact = { paths: ["err.input", "err.cause.input"], remove: true };

/** Logs JSON lines to standard output. Never log what a user typed. */
export const createLogger = (level: string): Logger =>
  pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, redact },
    pino.destination({ dest: 1, sync: true }),
  );
