import type { ReactNode } from "react";
import { describeError } from "../lib/errors.ts";
import { useOperator } from "../lib/operator.ts";
import { navigate } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { NotFound } from "./NotFound.tsx";
import { PageSkeleton } from "./Page.tsx";

/** Renders its children for operators. For others the page does not exist. */
export function OperatorsOnly({ children }: { children: ReactNode }) {
  const { operates, wasOperator, problem, check } = useOperator();
  if (operates) return children;
  if (wasOperator) return <FormerOperator />;
  if (operates === false) return <NotFound />;
  if (problem === null) return <PageSkeleton />;
  return (
    <main className="flex h-full flex-col items-center justify-center gap-4 bg-canvas px-6">
      <h1 className="sr-only">Operator pages</h1>
      <Notice>{describeError(problem)}</Notice>
      <Button icon="retry" onClick={check}>
        Try again
      </Button>
    </main>
  );
}

function FormerOperator() {
  return (
    <main className="flex h-full flex-col items-center justify-center gap-4 bg-canvas px-6 text-center">
      <h1 className="text-xl font-semibold tracking-tight">You are no longer an operator</h1>
      <p className="max-w-sm text-md text-ink-2">
        These pages are for operators. Whoever runs this server decides who is one.
      </p>
      <Button onClick={() => navigate("/", { replace: true })}>Back to conversations</Button>
    </main>
  );
}
