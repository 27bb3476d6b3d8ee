const DAY_MS = 24 * 60 * 60 * 1000;

let last = { ms: 0, text: new Date(0).toISOString() };

/** Remembers the last result: messages that arrive together have the same time. */
export function iso(ms: number): string {
  if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
  return last.text;
}

export const isoOrNull = (ms: number | null) => (ms === null ? null : iso(ms));

/** The UTC day of a time, as `YYYY-MM-DD`. */
export const dayOf = (ms: number) => iso(ms).slice(0, 10);

/** When that day ends. */
export const endOfDay = (ms: number) => `${dayOf(ms + DAY_MS)}T00:00:00.000Z`;
