import { useClient } from "@parley/client/react";
import { connectionMessages, useConnection } from "../lib/connection.ts";
import { Button } from "../ui/Button.tsx";
import { Logo } from "../ui/Logo.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";

/** A skeleton of the page until the account is known, as the page shows it before its scripts have loaded. */
export function Loading() {
  const client = useClient();
  const connection = useConnection();
  return (
    <main className="flex h-full" aria-busy="true">
      <div className="flex w-full flex-col border-r border-line bg-surface px-3 md:w-76 lg:w-80">
        <h1 className="flex h-15 items-center gap-2.5 px-1 pt-1 text-lg font-semibold tracking-tight">
          <Logo size={26} />
          Parley
        </h1>
        <Skeleton className="mb-3 h-9" />
        <div className="-mx-1">
          <ListSkeleton />
        </div>
        <div role="status" className="flex flex-col items-center gap-2 pt-4 text-sm text-ink-3">
          {connection !== "up" && connectionMessages[connection]}
          {connection === "unreachable" && (
            <Button size="small" icon="retry" onClick={() => client.reconnect()}>
              Retry
            </Button>
          )}
        </div>
      </div>
      <div className="hidden flex-1 bg-canvas md:block" />
    </main>
  );
}

export function ListSkeleton() {
  return ["w-28", "w-36", "w-24", "w-40", "w-32"].map((width) => (
    <div key={width} className="mb-px flex h-14.5 shrink-0 items-center gap-3 px-2.5">
      <Skeleton className="size-10 rounded-full" />
      <div className="flex flex-1 flex-col gap-2">
        <Skeleton className={`h-3.5 ${width}`} />
        <Skeleton className="h-3 w-full" />
      </div>
    </div>
  ));
}
