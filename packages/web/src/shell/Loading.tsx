import { useClient } from "@parley/client/react";
import { connectionMessages, useConnection } from "../lib/connection.ts";
import { Button } from "../ui/Button.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";

/** A skeleton of the page until the account is known. */
export function Loading() {
  const client = useClient();
  const connection = useConnection();
  return (
    <main className="flex h-full" aria-busy="true">
      <h1 className="sr-only">Parley</h1>
      <div className="flex w-full flex-col gap-4 border-r border-line bg-surface p-4 md:w-80">
        <Skeleton className="h-9" />
        <ListSkeleton />
        <div role="status" className="flex flex-col items-center gap-2 text-sm text-ink-3">
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
    <div key={width} className="flex items-center gap-3 px-2 py-1">
      <Skeleton className="size-10 rounded-full" />
      <div className="flex flex-1 flex-col gap-2">
        <Skeleton className={`h-3.5 ${width}`} />
        <Skeleton className="h-3 w-full" />
      </div>
    </div>
  ));
}
