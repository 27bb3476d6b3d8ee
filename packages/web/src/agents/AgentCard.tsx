import { useClient } from "@parley/client/react";
import type { AgentProfile, UsageRow } from "@parley/protocol";
import { showError } from "../lib/errors.ts";
import { nameOf } from "../lib/names.ts";
import type { AgentTarget } from "../lib/router.ts";
import { CopyButton } from "../markdown/CodeBlock.tsx";
import AgentTools from "../tools/AgentTools.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { Button } from "../ui/Button.tsx";
import { CardSection, CollapsibleSection } from "./CardSection.tsx";
import { KeySection } from "./KeySection.tsx";
import { LimitsForm } from "./LimitsForm.tsx";
import { ProfileForm } from "./ProfileForm.tsx";
import { openDirect } from "./sandbox.ts";
import { UsageChart } from "./UsageChart.tsx";

interface AgentCardProps {
  agent: AgentProfile;
  usage: UsageRow[] | null;
  /** The field to open the card at. */
  target: AgentTarget | null;
}

export function AgentCard({ agent, usage, target }: AgentCardProps) {
  const client = useClient();
  const account = { ...agent, kind: "agent" } as const;
  const name = nameOf(account);
  return (
    <section
      aria-label={name}
      className="overflow-hidden rounded-lg border border-line bg-surface shadow-low"
    >
      <header className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line px-5 py-4">
        <Avatar account={account} size={40} />
        <div className="min-w-0 flex-1 basis-44">
          <h2 className="text-lg leading-6 font-semibold tracking-tight break-words">{name}</h2>
          <p className="flex items-center gap-1 text-sm text-ink-3">
            <span className="truncate">@{agent.username}</span>
            <CopyButton text={`@${agent.username}`} />
          </p>
        </div>
        <Button
          icon="send"
          size="small"
          onClick={() => openDirect(client, agent.username).catch(showError)}
        >
          Open conversation
        </Button>
      </header>
      <div className="flex flex-col gap-6 p-5">
        <KeySection agent={agent} target={target?.field === "key" ? target : null} />
        <CardSection title="Usage">
          <UsageChart rows={usage} />
        </CardSection>
        <CollapsibleSection title="Name, model and instructions">
          <ProfileForm agent={agent} />
        </CollapsibleSection>
        <CollapsibleSection title="Tools">
          <AgentTools agent={agent} />
        </CollapsibleSection>
        <CollapsibleSection title="Limits" target={target?.field !== "key" ? target : null}>
          <LimitsForm agent={agent} />
        </CollapsibleSection>
      </div>
    </section>
  );
}
