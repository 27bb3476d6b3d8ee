interface FoldedMessageProps {
  /** What stands in place of the message. */
  text: string;
  onShow: () => void;
}

/** A message that is folded away to one line. */
export function FoldedMessage({ text, onShow }: FoldedMessageProps) {
  return (
    <p className="py-1 text-sm text-ink-3">
      {text}
      <span aria-hidden="true"> — </span>
      <button
        type="button"
        onClick={({ currentTarget }) => {
          // The button disappears.
          currentTarget.closest("article")?.focus({ preventScroll: true });
          onShow();
        }}
        className="rounded-sm font-medium text-accent underline underline-offset-2 pointer-coarse:py-2"
      >
        Show
      </button>
    </p>
  );
}
