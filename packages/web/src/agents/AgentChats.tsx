import type { LocalChat } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useState } from "react";
import { showError } from "../lib/errors.ts";
import { usePolicy } from "../lib/policy.ts";
import { chatPath } from "../lib/router.ts";
import { shortTime } from "../lib/time.ts";
import { Button } from "../ui/Button.tsx";
import { Link } from "../ui/Link.tsx";
import { startNewChat, useAgentChats } from "./chats.ts";
import { useChatTitle } from "./openings.ts";

const SHOWN_CHATS = 5;

/** Starts another conversation with one's own agent. */
export function NewChatButton({ username }: { username: string }) {
  const client = useClient();
  if (usePolicy().start_chats === "none") return null;
  return (
    <Button
      icon="chat"
      size="small"
      onClick={() => startNewChat(client, username).catch(showError)}
    >
      New chat
    </Button>
  );
}

/** The conversations with an agent, latest first. */
export function AgentChats({ username, open }: { username: string; open?: string }) {
  const chats = useAgentChats(username);
  const [all, setAll] = useState(false);
  if (chats.length === 0) {
    return <p className="text-sm text-ink-3">You have not talked to it yet.</p>;
  }
  const shown = all ? chats : chats.slice(0, SHOWN_CHATS);
  return (
    <>
      <ul className="-mx-2 flex flex-col">
        {shown.map((chat) => (
          <li key={chat.id}>
            <ChatLine chat={chat} open={chat.id === open} />
          </li>
        ))}
      </ul>
      {shown.length < chats.length && (
        <Button size="small" look="quiet" className="self-start" onClick={() => setAll(true)}>
          Show all {chats.length}
        </Button>
      )}
    </>
  );
}

function ChatLine({ chat, open }: { chat: LocalChat; open: boolean }) {
  const title = useChatTitle(chat, true);
  return (
    <Link
      to={chatPath(chat.id)}
      aria-current={open ? "page" : undefined}
      className={`flex min-h-9 items-center gap-3 rounded-md px-2 py-1.5 text-base ${open ? "bg-selected" : "hover:bg-hover"}`}
    >
      <span className="min-w-0 flex-1 truncate" title={title}>
        {title}
      </span>
      <time dateTime={chat.updated_at} className="shrink-0 text-xs text-ink-3">
        {shortTime(chat.updated_at)}
      </time>
    </Link>
  );
}
