import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useCallback } from "react";
import { describeError } from "../lib/errors.ts";
import { operatePath } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";
import { Link } from "../ui/Link.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { useFetched } from "./calls.ts";

type Statistics = OutputOf<"getStatistics">;

/** How much the service has and does. */
export function State() {
  const client = useClient();
  const fetchStatistics = useCallback(() => client.getStatistics(), [client]);
  const { result, problem, busy, reload } = useFetched(fetchStatistics);
  return (
    <section aria-labelledby="state-heading" aria-busy={busy} className="flex flex-col gap-4">
      <div className="flex items-center justify-between gap-3">
        <h2 id="state-heading" className="text-lg font-semibold tracking-tight">
          State of the service
        </h2>
        <Button size="small" icon="retry" busy={busy} onClick={reload}>
          Refresh
        </Button>
      </div>
      {problem !== null && <Notice>{describeError(problem)}</Notice>}
      {result && <Figures {...result} />}
      {!result && problem === null && <Skeleton className="h-64" />}
      {result && <p className="text-sm text-ink-3">Parley {result.version}</p>}
    </section>
  );
}

function Figures(statistics: Statistics) {
  const { people, suspended, active_day, active_month } = statistics;
  const { conversations, messages, open_turns } = statistics;
  return (
    <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3">
      <Figure label="People" value={people} to={operatePath("accounts")} />
      <Figure
        label="Suspended"
        value={suspended}
        to={operatePath("accounts", { show: "suspended" })}
      />
      <Figure label="Active in 24 hours" value={active_day} />
      <Figure label="Active in 30 days" value={active_month} />
      <Figure label="Conversations" value={conversations} />
      <Figure label="Messages ever sent, about" value={messages} />
      <Figure label="Answers waiting or running" value={open_turns} />
    </dl>
  );
}

function Figure({ label, value, to }: { label: string; value: number; to?: string }) {
  const figure = value.toLocaleString();
  return (
    <div className="flex flex-col-reverse justify-end rounded-lg border border-line bg-surface p-4 shadow-low">
      <dt className="text-sm text-ink-3">{label}</dt>
      <dd className="text-xl font-semibold tracking-tight tabular-nums">
        {to ? (
          <Link to={to} className="rounded-sm text-accent underline-offset-4 hover:underline">
            {figure}
            <span className="sr-only">: show them</span>
          </Link>
        ) : (
          figure
        )}
      </dd>
    </div>
  );
}
