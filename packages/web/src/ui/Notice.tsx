import type { ReactNode } from "react";
import { Icon } from "./Icon.tsx";

/** One line with an error, at the place where it happened. */
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
