import { useAgents, useClient } from "@parley/client/react";
import type { UsageRow } from "@parley/protocol";
import { lazy, Suspense, useEffect, useState } from "react";
import { describeError } from "../lib/errors.ts";
import type { AgentTarget } from "../lib/router.ts";
import { Page } from "../shell/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { AgentCard } from "./AgentCard.tsx";
import { isProvided } from "./keys.ts";
import { DAYS, sinceDays } from "./usage.ts";

const AgentEditor = lazy(() => import("./AgentEditor.tsx"));

/** `target` is a field of a card to open, scroll to and focus. */
export default function AgentsPage({ target }: { target: AgentTarget | null }) {
  const client = useClient();
  const agents = useAgents();
  const [usage, setUsage] = useState<UsageRow[] | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const [created, setCreated] = useState<string | null>(null);
  useEffect(() => {
    setProblem(null);
    client.model.refreshAgents().catch(setProblem);
    client
      .getAgentUsage({ since: sinceDays(DAYS) })
      .then(({ items }) => setUsage(items), setProblem);
  }, [client]);
  return (
    <Page
      title="My agents"
      action={<NewAgentButton onCreated={setCreated} />}
      intro={`They answer in your name${agents.some(isProvided) ? "" : " and with your keys"}, in conversations you bring them to.`}
    >
      {problem !== null && <Notice>{describeError(problem)}</Notice>}
      {agents.length === 0 && problem === null && <Skeleton className="h-80" />}
      {agents.map((agent) => (
        <AgentCard
          key={agent.username}
          agent={agent}
          target={target?.name === agent.name ? target : null}
          isCreated={agent.username === created}
          usage={usage?.filter((row) => row.agent === agent.username) ?? null}
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
