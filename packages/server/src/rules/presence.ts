/** Groups of more people do not tell them of each other. */
export const MOST_PEOPLE = 100;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** When a person was last online, as precisely as others are told. */
export function roundedLastSeen(at: number, now: number): number {
  const age = now - at;
  const step = age <= HOUR_MS ? 5 * MINUTE_MS : age <= DAY_MS ? HOUR_MS : DAY_MS;
  return at - (at % step);
}
