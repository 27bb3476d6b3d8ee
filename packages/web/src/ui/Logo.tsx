/** The mark on a grid of 64: a square with a speech bubble, and in it the spark of an agent. */
export const MARK = {
  colour: "#4048c9",
  bubble: "M18 16h28a6 6 0 0 1 6 6v17a6 6 0 0 1-6 6H31l-10 8v-8h-3a6 6 0 0 1-6-6V22a6 6 0 0 1 6-6z",
  spark: "M32 21.5l2.4 6.6 6.6 2.4-6.6 2.4-2.4 6.6-2.4-6.6-6.6-2.4 6.6-2.4z",
} as const;

export function Logo({ size = 28 }: { size?: number }) {
  return (
    <svg aria-hidden="true" width={size} height={size} viewBox="0 0 64 64" className="shrink-0">
      <rect width="64" height="64" rx="15" fill={MARK.colour} />
      <path d={MARK.bubble} fill="#fff" />
      <path d={MARK.spark} fill={MARK.colour} />
    </svg>
  );
}
