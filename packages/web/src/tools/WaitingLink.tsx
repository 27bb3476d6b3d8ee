import { count } from "../lib/names.ts";
import { useRoute } from "../lib/router.ts";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";
import { usePending } from "./pending.ts";

/** Leads to what waits for the person's decision. Hidden while nothing does. */
export function WaitingLink() {
  const { items, questions } = usePending();
  const isOpen = useRoute().name === "waiting";
  const waiting = (items?.length ?? 0) + questions.length;
  if (waiting === 0) return null;
  return (
    <div className="px-2 pb-1">
      <Link
        to="/waiting"
        aria-current={isOpen ? "page" : undefined}
        className={`flex h-10 animate-fade items-center gap-3 rounded-md px-2.5 text-base font-medium transition-colors focus-visible:outline-offset-[-2px] ${isOpen ? "bg-selected shadow-[inset_3px_0_var(--color-accent)] forced-colors:outline-2" : "hover:bg-hover"}`}
      >
        <span className="inline-flex w-10 justify-center text-warn">
          <Icon name="bell" size={18} />
        </span>
        <span className="flex-1">Waiting for you</span>
        <span
          role="img"
          aria-label={count(waiting, "decision")}
          className="inline-flex h-4.5 min-w-4.5 items-center justify-center rounded-full bg-accent-fill px-1 text-2xs font-semibold text-on-accent tabular-nums"
        >
          {waiting > 99 ? "99+" : waiting}
        </span>
      </Link>
    </div>
  );
}
