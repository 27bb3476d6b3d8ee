import pino from "pino";

export type Logger = pino.Logger;

/** Structured lines on standard output. Nothing a user typed is ever logged. */
export const logger = (level: string): Logger =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime });
