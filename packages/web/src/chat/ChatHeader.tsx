import { useSelf } from "../lib/me.ts";
import { chatTitle, count, isMyAgent, others, ownerOf } from "../lib/names.ts";
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
  return (
    <header className="flex min-h-15 shrink-0 items-center gap-2 border-b border-line bg-surface px-2 py-2 md:px-4">
      <div className="md:hidden">
        <IconButton icon="back" label="Back to conversations" onClick={() => navigate("/")} />
      </div>
      <ChatAvatar chat={chat} />
      <div className="min-w-0 flex-1 pl-1">
        <h1
          title={chatTitle(chat, me)}
          className="line-clamp-2 text-md leading-5 font-semibold tracking-tight break-words"
        >
          {chatTitle(chat, me)}
        </h1>
        <p className="truncate text-sm text-ink-3">
          <Subtitle />
        </p>
      </div>
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
  if (other.kind === "human") return `@${other.username}`;
  return isMyAgent(other, me)
    ? "Your agent · always answers"
    : `Agent of @${ownerOf(other.username)}`;
}
