/** Stands in place of the composer in the direct conversation with a deleted account. */
export function ClosedComposer() {
  return (
    <div className="shrink-0 px-3 pb-[max(0.75rem,env(safe-area-inset-bottom))] md:px-4 md:pb-4">
      <p className="mx-auto max-w-200 rounded-lg border border-line bg-sunken px-4 py-3 text-base text-ink-2">
        This account is deleted. You can still read the conversation.
      </p>
    </div>
  );
}
