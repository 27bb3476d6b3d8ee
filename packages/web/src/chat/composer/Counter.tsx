import { count } from "../../lib/names.ts";

export const isTooLong = (left: number | null) => left !== null && left < 0;

/** The number of characters left near the length limit. */
export function Counter({ left }: { left: number | null }) {
  return (
    <p
      role="status"
      className={`px-4 text-xs tabular-nums not-empty:pb-2 ${isTooLong(left) ? "text-danger" : "text-ink-3"}`}
    >
      {left !== null && describeLeft(left)}
    </p>
  );
}

function describeLeft(left: number): string {
  if (left >= 0) return `${count(left, "character")} left`;
  return `Too long by ${count(-left, "character")}. Shorten it, or send it in parts.`;
}
