import { type ReactNode, useEffect, useRef } from "react";
import { focusField } from "../lib/focus.ts";
import type { AgentTarget } from "../lib/router.ts";
import { Icon } from "../ui/Icon.tsx";

/** A section of an agent's card. */
export function CardSection({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="flex flex-col gap-3">
      <h3 className="text-base font-semibold">{title}</h3>
      {children}
    </div>
  );
}

interface CollapsibleSectionProps {
  title: string;
  /** The field to open the section at; a new object for each request. */
  target?: AgentTarget | null;
  children: ReactNode;
}

/** A section that is closed until the person, or a link to one of its fields, opens it. */
export function CollapsibleSection({ title, target = null, children }: CollapsibleSectionProps) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (target === null || !details.current) return;
    details.current.open = true;
    focusField(details.current.querySelector(`[name=${target.field}]`));
  }, [target]);
  return (
    <details ref={details} className="group/fold border-t border-line pt-3">
      <summary className="flex min-h-8 items-center gap-2 rounded-sm text-base font-semibold">
        <span className="text-ink-3 transition-transform group-open/fold:rotate-90">
          <Icon name="next" size={16} />
        </span>
        {title}
      </summary>
      <div className="pt-3">{children}</div>
    </details>
  );
}
