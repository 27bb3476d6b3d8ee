import { useStatus } from "@parley/client/react";
import { Skeleton } from "../ui/Skeleton.tsx";

/** The frame of the page, before it is known what goes into it. */
export function Loading() {
  const offline = useStatus() === "offline";
  return (
    <main className="flex h-full" aria-busy="true">
      <h1 className="sr-only">Parley</h1>
      <div className="flex w-full flex-col gap-4 border-r border-line bg-surface p-4 md:w-80">
        <Skeleton className="h-9" />
        <ListSkeleton />
        <p role="status" className="text-center text-sm text-ink-3">
          {offline ? "Waiting for the connection…" : ""}
        </p>
      </div>
      <div className="hidden flex-1 bg-canvas md:block" />
    </main>
  );
}

export function ListSkeleton() {
  return ["w-28", "w-36", "w-24", "w-40", "w-32"].map((width) => (
    <div key={width} className="flex items-center gap-3 px-2 py-1">
      <Skeleton className="size-10 rounded-full" />
      <div className="flex flex-1 flex-col gap-2">
        <Skeleton className={`h-3.5 ${width}`} />
        <Skeleton className="h-3 w-full" />
      </div>
    </div>
  ));
}
