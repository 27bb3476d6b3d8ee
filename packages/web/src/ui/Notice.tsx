import type { ReactNode } from "react";
import { Icon, type IconName } from "./Icon.tsx";

const tones = {
  danger: ["bg-danger-soft text-danger", "alert"],
  warn: ["bg-warn-soft text-warn", "info"],
  good: ["bg-good-soft text-good", "check"],
  plain: ["bg-sunken text-ink-2", "info"],
} as const satisfies Record<string, readonly [string, IconName]>;

interface NoticeProps {
  tone: keyof typeof tones;
  icon?: IconName;
  children: ReactNode;
  actions?: ReactNode;
}

/** A sentence about what happened, and what can be done about it. */
export function Notice({ tone, icon, children, actions }: NoticeProps) {
  const [look, ownIcon] = tones[tone];
  return (
    <div className={`flex flex-wrap items-center gap-x-3 gap-y-2 rounded-md px-3 py-2 ${look}`}>
      <p className="flex min-w-0 flex-1 basis-56 items-start gap-2 text-sm">
        <span className="mt-0.5">
          <Icon name={icon ?? ownIcon} size={16} />
        </span>
        <span className="min-w-0">{children}</span>
      </p>
      {actions && <div className="flex flex-wrap gap-2">{actions}</div>}
    </div>
  );
}
