const clock = new Intl.DateTimeFormat(undefined, { hour: "numeric", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat(undefined, { weekday: "short" });
const shortDay = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const longDay = new Intl.DateTimeFormat(undefined, {
  weekday: "long",
  day: "numeric",
  month: "long",
});
const fullDay = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "long",
  year: "numeric",
});
const mediumDay = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const moment = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "short" });

const DAY_MS = 86_400_000;

const startOfDay = (date: Date) => new Date(date).setHours(0, 0, 0, 0);
const daysAgo = (date: Date, now: Date) =>
  Math.round((startOfDay(now) - startOfDay(date)) / DAY_MS);

export const clockTime = (at: string) => clock.format(new Date(at));
export const fullTime = (at: string) => moment.format(new Date(at));
export const dateOf = (at: string) => mediumDay.format(new Date(at));

/** A day in milliseconds: from its start to the start of the next day. */
export interface Day {
  from: number;
  to: number;
}

export function dayAround(at: number): Day {
  const from = startOfDay(new Date(at));
  const next = new Date(from);
  return { from, to: next.setDate(next.getDate() + 1) };
}

/** For lists: the time for today, the weekday for this week, otherwise the date. */
export function shortTime(at: string, now = new Date()): string {
  const date = new Date(at);
  const days = daysAgo(date, now);
  if (days <= 0) return clock.format(date);
  return days < 7 ? weekday.format(date) : shortDay.format(date);
}

/** For separators between messages of different days. */
export function dayLabel(at: string | number, now = new Date()): string {
  const date = new Date(at);
  const days = daysAgo(date, now);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return date.getFullYear() === now.getFullYear() ? longDay.format(date) : fullDay.format(date);
}

export function duration(ms: number | null): string {
  if (ms === null) return "–";
  return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const MINUTE_MS = 60_000;
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** «in 23 hours», «in 5 minutes». */
export function timeUntil(at: string, now = Date.now()): string {
  const minutes = Math.max(1, Math.round((Date.parse(at) - now) / MINUTE_MS));
  return minutes < 60
    ? relative.format(minutes, "minute")
    : relative.format(Math.round(minutes / 60), "hour");
}
