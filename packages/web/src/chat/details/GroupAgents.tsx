import { useAgents, useClient, useMessages } from "@parley/client/react";
import type { AgentProfile, GroupAgent } from "@parley/protocol";
import { useCallback, useEffect } from "react";
import { useLacksKey } from "../../agents/keys.ts";
import { showError } from "../../lib/errors.ts";
import { useFetched } from "../../lib/fetched.ts";
import { useSelf } from "../../lib/me.ts";
import { isMyAgent, nameOf } from "../../lib/names.ts";
import { usePolicy } from "../../lib/policy.ts";
import { agentPath, navigate } from "../../lib/router.ts";
import { toast } from "../../lib/toasts.ts";
import { AccountLabel } from "../../ui/AccountLabel.tsx";
import { Avatar } from "../../ui/Avatar.tsx";
import { Button, IconButton } from "../../ui/Button.tsx";
import { Choice } from "../../ui/Choice.tsx";
import { Unfetched } from "../../ui/Unfetched.tsx";
import { useChatContext } from "../context.ts";
import { Problem, ProblemButton } from "../Problem.tsx";

/** The agents of the group, when each of them answers, and a button that stops all of them. */
export function GroupAgents() {
  const { chat } = useChatContext();
  const client = useClient();
  const mine = useAgents();
  const members = chat.participants.map(({ username }) => username).join();
  const { changes } = useMessages(chat.id);
  const lastModeChange = changes.findLast(({ kind }) => kind === "mode_changed")?.seq;
  const fetched = useFetched(
    // biome-ignore lint/correctness/useExhaustiveDependencies: new members may bring agents
    useCallback(
      () => client.getGroupAgents({ chat_id: chat.id }),
      [client, chat.id, members, lastModeChange],
    ),
  );
  const agents = fetched.value?.items;
  useEffect(() => {
    // If it fails, the page shows the agents that are known already.
    void client.model.refreshAgents().catch(() => {});
  }, [client]);
  const mayAdd = usePolicy().start_chats !== "none";
  const absent = mine.filter(
    ({ username }) => mayAdd && !agents?.some(({ agent }) => agent.username === username),
  );
  const change = (work: Promise<unknown>) => work.then(fetched.fetchAgain, showError);
  const stopAll = () =>
    client.stopChatAgents({ chat_id: chat.id }).then(({ stopped, cancelled }) => {
      toast(stopped + cancelled > 0 ? "All agents were stopped." : "No agent was answering.");
    }, showError);

  return (
    <section aria-labelledby="agents-heading">
      <div className="mb-2 flex items-center justify-between">
        <h3 id="agents-heading" className="text-base font-semibold">
          Agents
        </h3>
        {agents !== undefined && agents.length > 0 && (
          <Button size="small" icon="stop" look="quiet" onClick={stopAll}>
            Stop all
          </Button>
        )}
      </div>
      <div className="flex flex-col gap-3">
        {!agents && <Unfetched fetched={fetched} className="h-20" />}
        {agents?.map((entry) => (
          <AgentEntry key={entry.agent.username} entry={entry} onChange={change} />
        ))}
        {agents?.length === 0 && (
          <p className="text-sm text-ink-3">
            No agent is here yet.{mayAdd && " Bring one of yours:"}
          </p>
        )}
        {agents && absent.length > 0 && <AbsentAgents agents={absent} onChange={change} />}
      </div>
    </section>
  );
}

type Change = (work: Promise<unknown>) => void;

const modes = [
  {
    value: "mention",
    label: "When mentioned",
    hint: "It reads along, and answers only messages that name it.",
  },
  {
    value: "always",
    label: "Every message",
    hint: "It answers whatever a person writes here, at its owner’s expense.",
  },
] as const;

function AgentEntry({ entry, onChange }: { entry: GroupAgent; onChange: Change }) {
  const { chat } = useChatContext();
  const me = useSelf();
  const client = useClient();
  const { agent, always_on } = entry;
  const mine = isMyAgent(agent, me);
  const target = { chat_id: chat.id, agent_username: agent.username };
  const remove = mine
    ? () => onChange(client.removeGroupAgent(target))
    : () => onChange(client.removeChatMember({ chat_id: chat.id, username: agent.username }));
  return (
    <div className="flex flex-col gap-2.5 rounded-lg border border-line p-3">
      <div className="flex items-center gap-3">
        <AccountLabel account={agent} />
        {(mine || chat.admin === me.username) && (
          <IconButton
            icon="trash"
            label={`Remove ${agent.display_name} (@${agent.username}) from the group`}
            small
            onClick={remove}
          />
        )}
      </div>
      {mine ? (
        <>
          <Choice
            label={`When @${agent.username} answers`}
            value={always_on ? "always" : "mention"}
            options={modes}
            onChange={(mode) =>
              onChange(client.setGroupAgentMode({ ...target, always_on: mode === "always" }))
            }
          />
          <KeyWarning username={agent.username} always={always_on} />
        </>
      ) : (
        <p className="text-sm text-ink-3">
          {always_on ? "Answers every message of a person." : "Answers when it is mentioned."}
        </p>
      )}
    </div>
  );
}

/** One's own agent cannot answer without a key, and everybody sees its failures. */
function KeyWarning({ username, always }: { username: string; always: boolean }) {
  if (!useLacksKey(username)) return null;
  return (
    <Problem
      tone={always ? "danger" : "quiet"}
      icon="key"
      actions={
        <ProblemButton onClick={() => navigate(agentPath(username, "key"))}>
          Set a key
        </ProblemButton>
      }
    >
      {always ? "It has no API key: it fails under every message." : "It has no API key yet."}
    </Problem>
  );
}

function AbsentAgents({ agents, onChange }: { agents: AgentProfile[]; onChange: Change }) {
  const { chat } = useChatContext();
  const client = useClient();
  return agents.map(({ username, display_name, version }) => (
    <div
      key={username}
      className="flex items-center gap-3 rounded-lg border border-dashed border-line p-3"
    >
      <Avatar account={{ username, display_name, version, kind: "agent" }} size={32} />
      <span className="min-w-0 flex-1">
        <span className="block text-base font-medium break-words">
          {nameOf({ username, display_name, version, kind: "agent" })}
        </span>
        <span className="block text-xs break-all text-ink-3">@{username}</span>
      </span>
      <Button
        size="small"
        icon="plus"
        aria-label={`Add @${username}`}
        onClick={() =>
          onChange(client.addGroupAgent({ chat_id: chat.id, agent_username: username }))
        }
      >
        Add
      </Button>
    </div>
  ));
}
