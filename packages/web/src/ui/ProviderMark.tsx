/** Marks of our own, on a 24-pixel grid; a provider that has none gets the spark. */
const marks: Record<string, string> = {
  // An open ring around a point.
  claude: "M18.4 7.2a8 8 0 1 0 0 9.6M12 10.2a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6z",
  // Two frames, one turned.
  gpt: "M12 3.2l8.8 8.8-8.8 8.8L3.2 12 12 3.2zM9 9h6v6H9z",
};
const SPARK = "M12 3l2.2 6.8L21 12l-6.8 2.2L12 21l-2.2-6.8L3 12l6.8-2.2L12 3z";

/** Tells agents of different providers apart at a glance; decorative. */
export function ProviderMark({ provider, size }: { provider: string; size: number }) {
  return (
    <svg
      aria-hidden="true"
      data-provider={provider}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={2.1}
      strokeLinecap="round"
      strokeLinejoin="round"
      className="shrink-0"
    >
      <path d={marks[provider] ?? SPARK} />
    </svg>
  );
}
