import type { ReactNode } from "react";

/** A section of an agent's card. */
export function CardSection(props: { title: string; action?: ReactNode; children: ReactNode }) {
  const { title, action, children } = props;
  return (
    <div className="flex flex-col gap-3">
      <div className="flex min-h-8 items-center justify-between gap-3">
        <h3 className="text-base font-semibold">{title}</h3>
        {action}
      </div>
      {children}
    </div>
  );
}
