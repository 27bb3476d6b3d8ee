interface FoldLineProps {
  /** What stands in place of the message while it is folded, and above it otherwise. */
  text: string;
  isFolded: boolean;
  onToggle: () => void;
}

/** The line to which a message is folded. */
export const FoldLine = ({ text, isFolded, onToggle }: FoldLineProps) => (
  <p className="py-1 text-sm text-ink-3">
    {text}
    <span aria-hidden="true"> — </span>
    <button
      type="button"
      onClick={onToggle}
      className="rounded-sm font-medium text-accent underline underline-offset-2 pointer-coarse:py-2"
    >
      {isFolded ? "Show" : "Hide"}
    </button>
  </p>
);
