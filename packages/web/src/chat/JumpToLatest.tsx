import { count } from "../lib/names.ts";
import { Icon } from "../ui/Icon.tsx";

export function JumpToLatest({ fresh, onJump }: { fresh: number; onJump: () => void }) {
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-8 z-10 flex justify-center">
      <button
        type="button"
        onClick={onJump}
        className={`pointer-events-auto inline-flex h-9 animate-in items-center gap-2 rounded-full px-4 text-sm font-medium shadow-pop ${fresh > 0 ? "bg-accent-fill text-on-accent" : "bg-raised text-ink"}`}
      >
        <Icon name="down" size={15} />
        {fresh > 0 ? count(fresh, "new message") : "Jump to latest"}
      </button>
    </div>
  );
}
