import { useClient } from "@parley/client/react";
import type { AgentProfile, UsageRow } from "@parley/protocol";
import { type ReactNode, useEffect, useRef } from "react";
import { complain } from "../lib/action.ts";
import { startAt } from "../lib/focus.ts";
import { nameOf } from "../lib/names.ts";
import type { AgentPart } from "../lib/router.ts";
import { CopyButton } from "../markdown/CodeBlock.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { Button } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import { KeySection } from "./KeySection.tsx";
import { LimitsForm } from "./LimitsForm.tsx";
import { ProfileForm } from "./ProfileForm.tsx";
import { openDirect } from "./sandbox.ts";
import { UsageChart } from "./UsageChart.tsx";

interface AgentCardProps {
  agent: AgentProfile;
  usage: UsageRow[] | null;
  /** The part of it that was asked for. */
  part: AgentPart | null;
}

export function AgentCard({ agent, usage, part }: AgentCardProps) {
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
          onClick={() => openDirect(client, agent.username).catch(complain)}
        >
          Open conversation
        </Button>
      </header>
      <div className="flex flex-col gap-6 p-5">
        <KeySection agent={agent} asked={part?.field === "key" ? part : null} />
        <Part title="Usage">
          <UsageChart rows={usage} />
        </Part>
        <Fold title="Name, model and instructions">
          <ProfileForm agent={agent} />
        </Fold>
        <Fold title="Limits" asked={part?.field !== "key" ? part : null}>
          <LimitsForm agent={agent} />
        </Fold>
      </div>
    </section>
  );
}

export function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="flex flex-col gap-3">
      <h3 className="text-base font-semibold">{title}</h3>
      {children}
    </div>
  );
}

interface FoldProps {
  title: string;
  /** The field of it that was asked for; a new object each time. */
  asked?: AgentPart | null;
  children: ReactNode;
}

function Fold({ title, asked = null, children }: FoldProps) {
  const fold = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (asked === null || !fold.current) return;
    fold.current.open = true;
    startAt(fold.current.querySelector(`[name=${asked.field}]`));
  }, [asked]);
  return (
    <details ref={fold} className="group/fold border-t border-line pt-3">
      <summary className="flex min-h-8 items-center gap-2 rounded-sm text-base font-semibold">
        <span className="text-ink-3 transition-transform group-open/fold:rotate-90">
          <Icon name="next" size={16} />
        </span>
        {title}
      </summary>
      <div className="pt-3">{children}</div>
    </details>
  );
}
