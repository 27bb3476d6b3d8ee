import { useAgents, useClient } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";
import { useEffect } from "react";
import { hasKey, isProvided } from "../agents/keys.ts";
import { trySandbox } from "../agents/sandbox.ts";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { useSelf } from "../lib/me.ts";
import { firstName, nameOf } from "../lib/names.ts";
import { meetsPeople, usePolicy } from "../lib/policy.ts";
import { navigate } from "../lib/router.ts";
import { Avatar } from "../ui/Avatar.tsx";
import { Button } from "../ui/Button.tsx";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";

/** The page for a new account: leads to a first answer in one step. */
export default function Welcome({ onNewChat }: { onNewChat: () => void }) {
  const me = useSelf();
  const policy = usePolicy();
  const client = useClient();
  const all = useAgents();
  // Others cannot be given a key.
  const agents = policy.agents ? all : all.filter(hasKey);
  const asks = policy.start_chats !== "none" && (policy.agents || agents.length > 0);
  useEffect(() => {
    // If it fails, the page shows the agents that are known already.
    void client.model.refreshAgents().catch(() => {});
  }, [client]);
  return (
    <div className="flex flex-col gap-6">
      <div>
        <h1 className="text-2xl font-semibold tracking-tight">
          Hello, {firstName(me.display_name)}
        </h1>
        <p className="mt-2 text-md text-ink-2">
          {asks ? invitation(agents) : "Your conversations appear here as soon as there are any."}
        </p>
      </div>
      {asks && <FirstAnswer agents={agents} />}
      <div className="grid gap-3 sm:grid-cols-2">
        {meetsPeople(policy) && (
          <WelcomeLink icon="users" title="Write to people" onPress={onNewChat}>
            Start a conversation or a group, and bring your agents along.
          </WelcomeLink>
        )}
        {policy.agents && <OwnAgentsLink isProvided={agents.some(isProvided)} />}
      </div>
    </div>
  );
}

const invitation = (agents: readonly AgentProfile[]) =>
  `You already have ${agents.length > 1 ? "agents of your own" : "an agent of your own"}. Say something to one: no key, no set-up${agents.some(isProvided) ? "." : ", nothing leaves this server."}`;

function FirstAnswer({ agents }: { agents: readonly AgentProfile[] }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [agent] = agents;
  const open = (chosen: AgentProfile) => trySandbox(client, chosen);
  return (
    <div className="flex flex-col gap-4 rounded-lg bg-raised p-5 shadow-pop">
      <ul className="-mx-2 flex flex-col gap-1">
        {agents.map((each) => (
          <li key={each.username}>
            <AgentRow agent={each} disabled={busy} onPress={() => run(() => open(each))} />
          </li>
        ))}
        {agents.length === 0 && <Skeleton className="mx-2 h-10" />}
      </ul>
      <Button
        look="primary"
        icon="spark"
        busy={busy}
        disabled={!agent}
        onClick={() => agent && run(() => open(agent))}
      >
        Try your agent now
      </Button>
      {error !== null && <Notice>{describeError(error)}</Notice>}
    </div>
  );
}

const OwnAgentsLink = ({ isProvided }: { isProvided: boolean }) =>
  isProvided ? (
    <WelcomeLink icon="settings" title="Make it yours" onPress={() => navigate("/agents")}>
      Give your agent a name and instructions.
    </WelcomeLink>
  ) : (
    <WelcomeLink icon="key" title="Use a real model" onPress={() => navigate("/agents")}>
      Store your own API key. It is sealed, and never shown again.
    </WelcomeLink>
  );

interface AgentRowProps {
  agent: AgentProfile;
  disabled: boolean;
  onPress: () => void;
}

function AgentRow({ agent, disabled, onPress }: AgentRowProps) {
  const account = { ...agent, kind: "agent" } as const;
  return (
    <button
      type="button"
      disabled={disabled}
      onClick={onPress}
      className="group flex w-full items-center gap-3 rounded-md p-2 text-left transition-colors hover:bg-hover"
    >
      <Avatar account={account} size={40} />
      <span className="min-w-0 flex-1">
        <span className="block text-md font-semibold break-words">{nameOf(account)}</span>
        <span className="block text-sm break-all text-ink-3">@{agent.username}</span>
        {isProvided(agent) && (
          <span className="block text-sm text-ink-2">Provided by this server</span>
        )}
      </span>
      <span className="text-ink-3 group-hover:text-ink">
        <Icon name="next" />
      </span>
    </button>
  );
}

interface WelcomeLinkProps {
  icon: IconName;
  title: string;
  children: string;
  onPress: () => void;
}

function WelcomeLink({ icon, title, children, onPress }: WelcomeLinkProps) {
  return (
    <button
      type="button"
      onClick={onPress}
      className="flex flex-col gap-1 rounded-lg border border-line bg-surface p-4 text-left transition-colors hover:bg-hover"
    >
      <span className="mb-1 text-accent">
        <Icon name={icon} />
      </span>
      <span className="text-base font-semibold">{title}</span>
      <span className="text-sm text-ink-2">{children}</span>
    </button>
  );
}
