import type { ReactNode } from "react";
import { Button } from "../ui/Button.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { FetchProblem } from "../ui/Unfetched.tsx";
import type { Listing } from "./calls.ts";

interface ListFrameProps {
  listing: Pick<Listing<unknown>, "items" | "problem" | "busy" | "more" | "reload">;
  /** What is shown in place of an empty list. */
  empty: string;
  children: ReactNode;
}

/** What surrounds every list: its skeleton, its error, its empty state and the button for more. */
export function ListFrame({ listing, empty, children }: ListFrameProps) {
  const { items, problem, busy, more, reload } = listing;
  return (
    <div aria-busy={busy} className="flex flex-col gap-4">
      {problem !== null && <FetchProblem problem={problem} onRetry={reload} />}
      {items === null && busy && <ListSkeleton />}
      {items?.length === 0 && (
        <p role="status" className="py-8 text-center text-base text-ink-3">
          {empty}
        </p>
      )}
      {items !== null && items.length > 0 && children}
      {more && (
        <Button className="self-center" busy={busy} onClick={more}>
          Show more
        </Button>
      )}
    </div>
  );
}

const ListSkeleton = () =>
  ["a", "b", "c", "d"].map((key) => <Skeleton key={key} className="h-14" />);
