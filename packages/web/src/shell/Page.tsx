import type { ReactNode } from "react";
import { useFocusKept } from "../lib/keep-focus.ts";
import { navigate } from "../lib/router.ts";
import { IconButton } from "../ui/Button.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";

/** A page beside the list: a title, an introduction and a column of sections. */
export function Page({
  title,
  intro,
  action,
  children,
}: {
  title: string;
  intro: string;
  /** A button beside the title. */
  action?: ReactNode;
  children: ReactNode;
}) {
  return (
    <main ref={useFocusKept()} className="relative h-full overflow-y-auto bg-canvas">
      <div className="mx-auto flex max-w-3xl flex-col gap-6 px-4 py-4 md:px-8 md:py-10">
        <header className="flex flex-wrap items-start gap-x-1 gap-y-3">
          <div className="-ml-2 md:hidden">
            <IconButton icon="back" label="Back to conversations" onClick={() => navigate("/")} />
          </div>
          <div className="min-w-0 flex-1 basis-64 pt-1 md:pt-0">
            <h1 className="text-xl font-semibold tracking-tight md:text-2xl">{title}</h1>
            <p className="mt-1 text-md text-ink-2">{intro}</p>
          </div>
          {action && <div className="max-md:basis-full md:pl-4">{action}</div>}
        </header>
        {children}
      </div>
    </main>
  );
}

export function PageSkeleton() {
  return (
    <div className="mx-auto flex max-w-3xl flex-col gap-6 px-4 py-10 md:px-8" aria-busy="true">
      <Skeleton className="h-8 w-48" />
      <Skeleton className="h-48" />
      <Skeleton className="h-48" />
    </div>
  );
}

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="rounded-lg border border-line bg-surface p-5 shadow-low">
      <h2 className="mb-4 text-lg font-semibold tracking-tight">{title}</h2>
      {children}
    </section>
  );
}
