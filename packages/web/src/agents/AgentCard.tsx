import { useAgents, useClient } from "@parley/client/react";
import type { AgentProfile, UsageRow } from "@parley/protocol";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { showError } from "../lib/errors.ts";
import { nameOf } from "../lib/names.ts";
import { usePolicy } from "../lib/policy.ts";
import type { AgentField, AgentTarget } from "../lib/router.ts";
import { CopyButton } from "../markdown/CodeBlock.tsx";
import { TokensSection } from "../tools/TokensSection.tsx";
import { ToolsSection } from "../tools/ToolsSection.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { Button, IconButton } from "../ui/Button.tsx";
import { AgentChats, NewChatButton } from "./AgentChats.tsx";
import { CardSection } from "./CardSection.tsx";
import { KeySection } from "./KeySection.tsx";
import { hasKey } from "./keys.ts";
import { isSandbox, openDirect } from "./sandbox.ts";
import { UsageChart } from "./UsageChart.tsx";

const AgentEditor = lazy(() => import("./AgentEditor.tsx"));

interface AgentCardProps {
  agent: AgentProfile;
  usage: UsageRow[] | null;
  /** The field to open the card at; a new object for each request. */
  target: AgentTarget | null;
  /** The card is folded to its first row, until somebody unfolds it. */
  isFolded: boolean;
  /** The person has just created it. */
  isCreated: boolean;
}

export function AgentCard({ agent, usage, target, isFolded, isCreated }: AgentCardProps) {
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (isCreated) card.current?.scrollIntoView({ block: "start" });
  }, [isCreated]);
  const name = nameOf({ ...agent, kind: "agent" });
  const [editing, setEditing] = useState<{ field: AgentField | null } | null>(null);
  const [unfolded, setUnfolded] = useState<boolean | null>(null);
  useEffect(() => {
    if (target === null) return;
    setUnfolded(true);
    if (target.field !== "key") setEditing({ field: target.field });
  }, [target]);
  const isOpen = unfolded ?? (!isFolded || isCreated);
  // All agents of a provider share its key, which the card of the default agent has.
  const policy = usePolicy();
  const isDefault = agent.name === agent.provider;
  const withKey = policy.agents && (isDefault || !hasKey(agent) || target?.field === "key");
  return (
    <section
      ref={card}
      aria-label={name}
      className="scroll-mt-4 overflow-hidden rounded-lg border border-line bg-surface shadow-low"
    >
      <CardHeader agent={agent} name={name} onEdit={() => setEditing({ field: null })}>
        <IconButton
          small
          icon={isOpen ? "fold" : "unfold"}
          label={`${isOpen ? "Hide" : "Show"} details of ${name}`}
          aria-expanded={isOpen}
          onClick={() => setUnfolded(!isOpen)}
        />
      </CardHeader>
      {isOpen && (
        <div className="flex flex-col gap-6 border-t border-line p-5">
          {!withKey && agent.key_configured && <SharedKey provider={agent.provider} />}
          {withKey && <KeySection agent={agent} target={target?.field === "key" ? target : null} />}
          <CardSection title="Chats" action={<NewChatButton username={agent.username} />}>
            <AgentChats username={agent.username} />
          </CardSection>
          {policy.agents && <Connections agent={agent} />}
          <CardSection title="Usage">
            <UsageChart rows={usage} />
          </CardSection>
        </div>
      )}
      {editing && policy.agents && (
        <Suspense>
          <AgentEditor agent={agent} field={editing.field} onClose={() => setEditing(null)} />
        </Suspense>
      )}
    </section>
  );
}

/** All agents of a provider use the key of the one that is named after it. */
function SharedKey({ provider }: { provider: string | null }) {
  const owner = useAgents().find(({ name }) => name === provider);
  return (
    owner && (
      <CardSection title="API key">
        <p className="text-base text-ink-2">
          It uses the key of {nameOf({ ...owner, kind: "agent" })}.
        </p>
      </CardSection>
    )
  );
}

const Connections = ({ agent }: { agent: AgentProfile }) =>
  agent.kind === "model" ? <ToolsSection agent={agent} /> : <TokensSection agent={agent} />;

interface CardHeaderProps {
  agent: AgentProfile;
  name: string;
  onEdit: () => void;
  /** The button that folds the card. */
  children: ReactNode;
}

function CardHeader({ agent, name, onEdit, children }: CardHeaderProps) {
  const client = useClient();
  const policy = usePolicy();
  return (
    <header className="flex flex-wrap items-center gap-x-3 gap-y-2 px-5 py-4">
      <Avatar account={{ ...agent, kind: "agent" }} size={40} />
      <div className="min-w-0 flex-1 basis-44">
        <h2 className="text-lg leading-6 font-semibold tracking-tight break-words">{name}</h2>
        <p className="flex items-center gap-1 text-sm text-ink-3">
          <span className="truncate">@{agent.username}</span>
          <CopyButton text={`@${agent.username}`} />
        </p>
        <p className="truncate text-sm text-ink-3">{whatAnswers(agent)}</p>
      </div>
      <div className="flex gap-2">
        {policy.agents && (
          <Button icon="edit" size="small" onClick={onEdit}>
            Edit
          </Button>
        )}
        {policy.start_chats !== "none" && (
          <Button
            icon="send"
            size="small"
            onClick={() => openDirect(client, agent.username).catch(showError)}
          >
            Open conversation
          </Button>
        )}
        {children}
      </div>
    </header>
  );
}

function whatAnswers(agent: AgentProfile): string {
  const { kind, model, online } = agent;
  if (kind === "model" && isSandbox(agent)) return "Sandbox, until you store a key";
  if (kind === "model") return hasKey(agent) ? model : `${model} · no API key yet`;
  return online ? "Your program · connected" : "Your program · not connected";
}
