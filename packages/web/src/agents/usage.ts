import type { UsageRow } from "@parley/protocol";

export const DAYS = 14;
const DAY_MS = 86_400_000;

export const sinceDays = (days: number, now = Date.now()) =>
  `${new Date(now - (days - 1) * DAY_MS).toISOString().slice(0, 10)}T00:00:00.000Z`;

export interface DayUsage {
  day: string;
  tokens: number;
  turns: number;
  failures: number;
}

/** One entry per day, also for days without usage. */
export function byDay(rows: readonly UsageRow[], now = Date.now()): DayUsage[] {
  const days = new Map<string, DayUsage>();
  for (let ago = DAYS - 1; ago >= 0; ago--) {
    const day = new Date(now - ago * DAY_MS).toISOString().slice(0, 10);
    days.set(day, { day, tokens: 0, turns: 0, failures: 0 });
  }
  for (const row of rows) {
    const entry = days.get(row.day);
    if (!entry) continue;
    entry.tokens += row.input_tokens + row.output_tokens;
    entry.turns += row.turns;
    entry.failures += row.failures;
  }
  return [...days.values()];
}
