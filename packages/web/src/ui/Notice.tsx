import type { ReactNode } from "react";
import { Icon } from "./Icon.tsx";

/** One quiet line about something that went wrong, where it went wrong. */
export function Notice({ children }: { children: ReactNode }) {
  return (
    <p role="alert" className="flex animate-fade items-start gap-1.5 text-sm text-danger">
      <span className="mt-0.5">
        <Icon name="alert" size={15} />
      </span>
      <span className="min-w-0 break-words">{children}</span>
    </p>
  );
}
