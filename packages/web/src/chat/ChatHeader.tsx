import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { startNewChat } from "../agents/chats.ts";
import { useLacksKey } from "../agents/keys.ts";
import { useOneChatTitle } from "../agents/openings.ts";
import { showError } from "../lib/errors.ts";
import { useSelf } from "../lib/me.ts";
import { count, isMyAgent, nameOf, others, ownerOf } from "../lib/names.ts";
import { navigate } from "../lib/router.ts";
import { ChatAvatar } from "../shell/ChatItem.tsx";
import { IconButton } from "../ui/Button.tsx";
import { useChatContext } from "./context.ts";

interface HeaderProps {
  details: boolean;
  onDetails: () => void;
}

export function ChatHeader({ details, onDetails }: HeaderProps) {
  const { chat } = useChatContext();
  const me = useSelf();
  const client = useClient();
  const title = useOneChatTitle(chat);
  const [other] = chat.kind === "direct" ? others(chat, me) : [];
  const agent = other && !other.deleted && isMyAgent(other, me) ? other : null;
  return (
    <header className="flex min-h-15 shrink-0 items-center gap-2 border-b border-line bg-surface px-2 py-2 md:px-4">
      <div className="md:hidden">
        <IconButton icon="back" label="Back to conversations" onClick={() => navigate("/")} />
      </div>
      <ChatAvatar chat={chat} />
      <div className="min-w-0 flex-1 pl-1">
        <h1
          title={title}
          className="line-clamp-2 text-md leading-5 font-semibold tracking-tight break-words"
        >
          {title}
        </h1>
        <p className="truncate text-sm text-ink-3">
          <Subtitle />
        </p>
      </div>
      {agent && (
        <IconButton
          icon="chat"
          label="New chat"
          onClick={() => startNewChat(client, agent.username).catch(showError)}
        />
      )}
      <IconButton
        icon={chat.kind === "group" ? "users" : "info"}
        label={chat.kind === "group" ? "Members and agents" : "Details"}
        aria-expanded={details}
        onClick={onDetails}
      />
    </header>
  );
}

function Subtitle() {
  const { chat } = useChatContext();
  const me = useSelf();
  if (chat.kind === "group") {
    const agents = chat.participants.filter(({ kind }) => kind === "agent").length;
    const people = chat.participant_count - agents;
    return `${count(people, "person", "people")}${agents > 0 ? `, ${count(agents, "agent")}` : ""}`;
  }
  const [other] = others(chat, me);
  if (!other) return null;
  return other.kind === "human" ? `@${other.username}` : <AgentSubtitle agent={other} />;
}

function AgentSubtitle({ agent }: { agent: Account }) {
  const { chat } = useChatContext();
  const me = useSelf();
  const answers = useLacksKey(agent.username) ? "has no API key yet" : "always answers";
  if (chat.title !== null) return `${nameOf(agent)} · ${answers}`;
  return isMyAgent(agent, me) ? `Your agent · ${answers}` : `Agent of @${ownerOf(agent.username)}`;
}
