import { describeError } from "../lib/errors.ts";
import type { Fetching } from "../lib/fetched.ts";
import { Button } from "./Button.tsx";
import { Notice } from "./Notice.tsx";
import { Skeleton } from "./Skeleton.tsx";

interface FetchProblemProps {
  problem: unknown;
  onRetry: () => void;
}

/** Why something could not be fetched, and a button that fetches it again. */
export const FetchProblem = ({ problem, onRetry }: FetchProblemProps) => (
  <div className="flex flex-wrap items-center gap-3">
    <Notice>{describeError(problem)}</Notice>
    <Button size="small" icon="retry" onClick={onRetry}>
      Try again
    </Button>
  </div>
);

interface UnfetchedProps {
  fetched: Fetching;
  /** Its class sets the height of the skeleton. */
  className: string;
}

/** Stands in for what is not fetched yet: a skeleton, or why it could not be fetched. */
export function Unfetched({ fetched: { problem, fetchAgain }, className }: UnfetchedProps) {
  if (problem === null) return <Skeleton className={className} />;
  return <FetchProblem problem={problem} onRetry={fetchAgain} />;
}
