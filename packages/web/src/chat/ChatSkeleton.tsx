import { Skeleton } from "../ui/Skeleton.tsx";

export function ChatSkeleton() {
  return (
    <div className="flex h-full flex-col bg-canvas" aria-busy="true">
      <div className="flex h-15 items-center gap-3 border-b border-line bg-surface px-4">
        <Skeleton className="size-8 rounded-full" />
        <Skeleton className="h-4 w-40" />
      </div>
      <div className="mx-auto flex w-full max-w-3xl flex-1 flex-col justify-end gap-5 px-4 py-6">
        <MessagesSkeleton />
      </div>
    </div>
  );
}

export function MessagesSkeleton() {
  return (
    <>
      <Skeleton className="h-14 w-3/5" />
      <Skeleton className="h-10 w-2/5 self-end" />
      <Skeleton className="h-24 w-4/5" />
    </>
  );
}
