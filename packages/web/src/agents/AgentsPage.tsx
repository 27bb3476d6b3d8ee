import { useAgents, useClient } from "@parley/client/react";
import { lazy, Suspense, useCallback, useState } from "react";
import { useFetched } from "../lib/fetched.ts";
import { usePolicy } from "../lib/policy.ts";
import type { AgentTarget } from "../lib/router.ts";
import { Page } from "../shell/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { FetchProblem } from "../ui/Unfetched.tsx";
import { AgentCard } from "./AgentCard.tsx";
import { isProvided } from "./keys.ts";
import { DAYS, sinceDays } from "./usage.ts";

const AgentEditor = lazy(() => import("./AgentEditor.tsx"));

/** With more agents than this, cards are folded to their first rows. */
const UNFOLDED = 2;

/** `target` is a field of a card to open, scroll to and focus. */
export default function AgentsPage({ target }: { target: AgentTarget | null }) {
  const client = useClient();
  const agents = useAgents();
  const policy = usePolicy();
  const [created, setCreated] = useState<string | null>(null);
  const usage = useFetched(
    useCallback(async () => {
      await client.model.refreshAgents();
      return (await client.getAgentUsage({ since: sinceDays(DAYS) })).items;
    }, [client]),
  );
  const problem = usage.value ? null : usage.problem;
  return (
    <Page
      title="My agents"
      action={policy.agents && <NewAgentButton onCreated={setCreated} />}
      intro={`They answer in your name${agents.some(isProvided) || !policy.agents ? "" : " and with your keys"}, in conversations you bring them to.`}
    >
      {problem !== null && <FetchProblem problem={problem} onRetry={usage.fetchAgain} />}
      {agents.length === 0 && problem === null && <Skeleton className="h-80" />}
      {agents.map((agent) => (
        <AgentCard
          key={agent.username}
          agent={agent}
          target={target?.name === agent.name ? target : null}
          isFolded={agents.length > UNFOLDED}
          isCreated={agent.username === created}
          usage={usage.value?.filter((row) => row.agent === agent.username) ?? null}
        />
      ))}
    </Page>
  );
}

function NewAgentButton({ onCreated }: { onCreated: (username: string) => void }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button look="primary" icon="plus" onClick={() => setOpen(true)}>
        New agent
      </Button>
      {open && (
        <Suspense>
          <AgentEditor agent={null} onCreated={onCreated} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
