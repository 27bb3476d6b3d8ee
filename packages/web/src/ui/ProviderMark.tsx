/** Our own marks, drawn around a dot on a 24-pixel grid. Providers without one get the spark. */
const marks: Record<string, string> = {
  claude: "M18.6 7a8.2 8.2 0 1 0 0 10",
  gpt: "M12 3l9 9-9 9-9-9 9-9z",
};
const SPARK = "M12 3l2.2 6.8L21 12l-6.8 2.2L12 21l-2.2-6.8L3 12l6.8-2.2L12 3z";

/** The mark of a provider. Decorative. */
export function ProviderMark({ provider, size }: { provider: string; size: number }) {
  const mark = marks[provider];
  return (
    <svg
      aria-hidden="true"
      data-provider={provider}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={2.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      className="shrink-0"
    >
      <path d={mark ?? SPARK} />
      {mark && <path d="M12 12h.01" strokeWidth={5} />}
    </svg>
  );
}
