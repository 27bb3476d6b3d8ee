import type { UsageRow } from "@parley/protocol";
import { count } from "../lib/names.ts";
import { Skeleton } from "../ui/Skeleton.tsx";
import { byDay, DAYS } from "./usage.ts";

/** In units of the view box. */
const HEIGHT = 56;
const STEP = 20;
const BAR = 12;

const dayName = new Intl.DateTimeFormat(undefined, {
  day: "numeric",
  month: "short",
  timeZone: "UTC",
});

/** Tokens by day as bars, with the totals as text beside them. */
export function UsageChart({ rows }: { rows: UsageRow[] | null }) {
  if (!rows) return <Skeleton className="h-20" />;
  const days = byDay(rows);
  const most = Math.max(...days.map(({ tokens }) => tokens), 1);
  const sum = (pick: (day: (typeof days)[number]) => number) =>
    days.reduce((total, day) => total + pick(day), 0);
  const tokens = sum((day) => day.tokens);
  const turns = sum((day) => day.turns);
  const failures = sum((day) => day.failures);
  return (
    <div className="flex flex-wrap items-end gap-x-6 gap-y-3">
      <div className="min-w-28">
        <p className="text-xl font-semibold tracking-tight tabular-nums">
          {tokens.toLocaleString()}
        </p>
        <p className="text-sm text-ink-3">tokens in {DAYS} days</p>
        <p className="text-sm text-ink-3">
          {count(turns, "answer")}
          {failures > 0 && `, ${failures} failed`}
        </p>
      </div>
      <svg
        role="img"
        aria-label={`Tokens by day over ${DAYS} days, ${tokens.toLocaleString()} in all`}
        viewBox={`0 0 ${DAYS * STEP} ${HEIGHT}`}
        className="h-14 min-w-48 flex-1"
        preserveAspectRatio="none"
      >
        {days.map(({ day, tokens: used }, index) => {
          const height = used === 0 ? 2 : Math.max(4, (used / most) * HEIGHT);
          return (
            <rect
              key={day}
              x={index * STEP + (STEP - BAR) / 2}
              y={HEIGHT - height}
              width={BAR}
              height={height}
              rx={2}
              className={used === 0 ? "fill-line" : "fill-accent"}
            >
              <title>{`${dayName.format(new Date(day))}: ${count(used, "token")}`}</title>
            </rect>
          );
        })}
      </svg>
    </div>
  );
}
