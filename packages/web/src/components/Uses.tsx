import type { ComponentUse } from "@parley/protocol";
import { type ReactNode, type Ref, use, useId, useLayoutEffect, useRef, useState } from "react";
import { clockTime, fullTime } from "../lib/time.ts";
import { Confirm } from "../ui/Confirm.tsx";
import { Icon } from "../ui/Icon.tsx";
import { ActionTarget } from "./action-target.ts";

/** The labels of components, by token. */
export type Labels = ReadonlyMap<string, string>;

const isDismissal = (token: string) => /^(cancel|dismiss):/.test(token);

interface OutcomeLineProps {
  uses: readonly ComponentUse[];
  labels: Labels;
}

/** The latest use of a component in a line: what was chosen, by whom and when. */
function OutcomeLine({ uses, labels }: OutcomeLineProps) {
  const target = use(ActionTarget);
  const latest = uses.at(-1);
  if (!target || !latest) return null;
  const more = uses.length - 1;
  return (
    <span className="flex min-w-0 items-start gap-1.5 text-sm font-normal text-ink-2">
      <span className={`mt-0.5 ${isDismissal(latest.token) ? "text-ink-3" : "text-good"}`}>
        <Icon name={isDismissal(latest.token) ? "close" : "check"} size={15} />
      </span>
      <span className="min-w-0 break-words">
        {labels.get(latest.token) ?? "Submitted"} · {target.who(latest.by)} ·{" "}
        <time dateTime={latest.at} title={fullTime(latest.at)}>
          {clockTime(latest.at)}
        </time>
        {more > 0 && ` and ${more} more`}
      </span>
    </span>
  );
}

/** All uses of a component, one line each; announced to screen readers. */
export function UseList({ uses, labels }: OutcomeLineProps) {
  return (
    <ul aria-live="polite" className="flex flex-col gap-1 empty:hidden">
      {uses.map((each) => (
        <li key={each.token + each.by.username}>
          <OutcomeLine uses={[each]} labels={labels} />
        </li>
      ))}
    </ul>
  );
}

interface CollapsibleProps {
  /** A component that may have the name of another one is a group: names of regions must be unique. */
  role?: "group";
  /** Its name for screen readers. */
  label: string;
  title: string;
  uses: readonly ComponentUse[];
  labels: Labels;
  /** It is used once, and does not open afterwards. */
  isFinal?: boolean;
  children: ReactNode;
}

/** A component that collapses to its outcome once it was used, and can be opened again. */
export function Collapsible(props: CollapsibleProps) {
  const { role, label, title, uses, labels, isFinal = false, children } = props;
  const [open, setOpen] = useState(false);
  const id = useId();
  const header = useRef<HTMLElement>(null);
  const used = uses.length > 0;
  const hasFocus = useRef(false);
  // The pressed button disappears, so the header that replaces it gets the focus. The focus is tracked
  // because browsers take it from a button that is disabled during its call, without an event.
  useLayoutEffect(() => {
    const isFree = document.activeElement === document.body;
    if (used && hasFocus.current && isFree) header.current?.focus({ preventScroll: true });
  }, [used]);
  const shown = !used || open;
  return (
    <section
      role={role}
      aria-label={label}
      onFocus={() => {
        hasFocus.current = true;
      }}
      onBlur={({ relatedTarget }) => {
        if (relatedTarget) hasFocus.current = false;
      }}
      className="w-full max-w-md rounded-lg border border-line bg-surface text-ink shadow-low"
    >
      {used && isFinal ? (
        <h3 ref={header as Ref<HTMLHeadingElement>} tabIndex={-1} className="px-4 py-2.5">
          <OutcomeLine uses={uses} labels={labels} />
        </h3>
      ) : used ? (
        <h3>
          <button
            ref={header as Ref<HTMLButtonElement>}
            type="button"
            aria-expanded={open}
            aria-controls={open ? id : undefined}
            onClick={() => setOpen(!open)}
            className="flex w-full items-center gap-3 rounded-lg px-4 py-2.5 text-left hover:bg-hover focus-visible:outline-offset-[-2px]"
          >
            <span className="min-w-0 flex-1">
              {title && (
                <span className="block text-md font-semibold tracking-tight break-words">
                  {title}
                </span>
              )}
              <OutcomeLine uses={uses} labels={labels} />
            </span>
            <span className={`text-ink-3 transition-transform ${open ? "rotate-90" : ""}`}>
              <Icon name="next" size={17} />
            </span>
          </button>
        </h3>
      ) : (
        title && (
          <h3 className="border-b border-line px-4 py-2.5 text-md font-semibold tracking-tight break-words">
            {title}
          </h3>
        )
      )}
      {shown && !(used && isFinal) && (
        <div
          id={id}
          className={`flex flex-col gap-3 px-4 py-3 ${used ? "border-t border-line" : ""}`}
        >
          {children}
          {uses.length > 1 && <UseList uses={uses} labels={labels} />}
        </div>
      )}
    </section>
  );
}

interface ConfirmAgainProps {
  /** The latest use. */
  last: ComponentUse;
  /** The label of the button; null for a form. */
  label: string | null;
  onBack: () => void;
  onConfirm: () => void;
}

/** Asks before a component is used a second time. */
export function ConfirmAgain({ last, label, onBack, onConfirm }: ConfirmAgainProps) {
  const target = use(ActionTarget);
  const who = target?.who(last.by) ?? "";
  return (
    <Confirm
      title={label === null ? "Submit it again?" : `«${label}» again?`}
      back="Leave it"
      action={label === null ? "Submit again" : "Press again"}
      onBack={onBack}
      onConfirm={onConfirm}
    >
      {who} did that already, {fullTime(last.at)}.
    </Confirm>
  );
}
