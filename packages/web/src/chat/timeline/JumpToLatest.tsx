import { count } from "../../lib/names.ts";
import { Icon } from "../../ui/Icon.tsx";

/** The look of buttons that float over the messages at their end. */
export const FLOATING =
  "pointer-events-auto inline-flex h-10 min-w-10 animate-in items-center justify-center gap-2 rounded-full text-sm font-medium shadow-pop transition-colors";
/** The look of those that lead to new messages. */
export const TO_NEW = "bg-accent-fill px-4 text-on-accent hover:bg-accent-press";

/** Scrolls to the latest message; shows the number of new ones. */
export function JumpToLatest({ unread, onJump }: { unread: number; onJump: () => void }) {
  return (
    <div className="pointer-events-none absolute inset-x-0 bottom-3 z-10 mx-auto flex max-w-208 justify-end px-3 md:px-4">
      <button
        type="button"
        onClick={onJump}
        aria-label={unread > 0 ? undefined : "Jump to latest"}
        title={unread > 0 ? undefined : "Jump to latest"}
        className={`${FLOATING} ${unread > 0 ? TO_NEW : "bg-raised text-ink-2 hover:bg-hover hover:text-ink"}`}
      >
        <Icon name="down" size={17} />
        {unread > 0 && count(unread, "new message")}
      </button>
    </div>
  );
}
