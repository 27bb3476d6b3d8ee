import type { ReactNode } from "react";
import { Icon, type IconName } from "../ui/Icon.tsx";

interface ProblemProps {
  /** `quiet` is for notes that are not errors. */
  tone?: "danger" | "quiet";
  icon?: IconName;
  children: ReactNode;
  actions?: ReactNode;
  /** The problem is below a message at the right. */
  isAtEnd?: boolean;
}

/** A line about a problem with a message, with buttons that solve it. */
export function Problem({
  tone = "danger",
  icon = "alert",
  children,
  actions,
  isAtEnd = false,
}: ProblemProps) {
  return (
    <div
      className={`flex text-sm ${isAtEnd ? "max-w-[min(100%,26rem)] justify-end" : "max-w-full"}`}
    >
      <span
        className={`flex h-8 items-center pointer-coarse:h-11 ${tone === "danger" ? "text-danger" : "text-ink-3"}`}
      >
        <Icon name={icon} size={15} />
      </span>
      {/* The sentence has the padding of the buttons, so that one that wraps begins below it. */}
      <div
        className={`flex min-w-0 flex-wrap items-center gap-x-1 ${isAtEnd ? "justify-end" : ""}`}
      >
        <p
          className={`min-w-0 px-1.5 py-1.5 pointer-coarse:py-3 ${tone === "danger" ? "text-danger" : "text-ink-2"}`}
        >
          {children}
        </p>
        {actions}
      </div>
    </div>
  );
}

interface ProblemButtonProps {
  onClick: () => void;
  busy?: boolean;
  children: ReactNode;
}

export function ProblemButton({ onClick, busy = false, children }: ProblemButtonProps) {
  return (
    <button
      type="button"
      // Not disabled, because the browser would take the focus from it.
      aria-disabled={busy || undefined}
      aria-busy={busy || undefined}
      onClick={busy ? undefined : onClick}
      className="inline-flex h-8 items-center rounded-sm px-1.5 font-medium whitespace-nowrap text-accent transition-colors hover:bg-hover aria-disabled:opacity-55 pointer-coarse:h-11"
    >
      {children}
    </button>
  );
}
