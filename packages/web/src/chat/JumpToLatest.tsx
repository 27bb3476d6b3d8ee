import { count } from "../lib/names.ts";
import { Icon } from "../ui/Icon.tsx";

/** At the end of the line, where it covers the least of what is read. */
export function JumpToLatest({ fresh, onJump }: { fresh: number; onJump: () => void }) {
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-3 z-10 mx-auto flex max-w-208 justify-end px-3 md:px-4">
      <button
        type="button"
        onClick={onJump}
        aria-label={fresh > 0 ? undefined : "Jump to latest"}
        title={fresh > 0 ? undefined : "Jump to latest"}
        className={`pointer-events-auto inline-flex h-10 min-w-10 animate-in items-center justify-center gap-2 rounded-full text-sm font-medium shadow-pop transition-colors ${fresh > 0 ? "bg-accent-fill px-4 text-on-accent hover:bg-accent-press" : "bg-raised text-ink-2 hover:bg-hover hover:text-ink"}`}
      >
        <Icon name="down" size={17} />
        {fresh > 0 && count(fresh, "new message")}
      </button>
    </div>
  );
}
