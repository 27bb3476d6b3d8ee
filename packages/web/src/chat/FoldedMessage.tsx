import { BLOCKED_MESSAGE } from "../lib/blocked.ts";

/** A message of somebody whom the person blocked, folded away. */
export function FoldedMessage({ onShow }: { onShow: () => void }) {
  return (
    <p className="py-1 text-sm text-ink-3">
      {BLOCKED_MESSAGE}
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
