import pino from "pino";

export type Logger = pino.Logger;

/** Structured lines on standard output, or standard error for commands. Nothing a user typed is ever logged. */
export const logger = (level: string, descriptor: 1 | 2 = 1): Logger =>
  pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: descriptor, sync: true }),
  );
