import type { LocalChat } from "@parley/client";
import { useChat, useDraft, useTyping } from "@parley/client/react";
import { plainText } from "@parley/protocol/markup";
import { memo, useEffect, useRef } from "react";
import { useSelf } from "../lib/me.ts";
import { chatTitle, count, firstName, others } from "../lib/names.ts";
import { chatPath } from "../lib/router.ts";
import { shortTime } from "../lib/time.ts";
import { Avatar, GroupAvatar, type GroupSize } from "../ui/Avatar.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";

export const ChatItem = memo(function ChatItem({ id, open }: { id: string; open: boolean }) {
  const chat = useChat(id);
  const me = useSelf();
  const link = useRef<HTMLAnchorElement>(null);
  const known = chat !== null;
  // However it was opened, it is in sight in the list.
  useEffect(() => {
    if (open && known) link.current?.scrollIntoView({ block: "nearest" });
  }, [open, known]);
  if (!chat) return null;
  const unread = chat.unread_count > 0;
  return (
    <Link
      ref={link}
      to={chatPath(id)}
      aria-current={open ? "page" : undefined}
      className={`flex items-center gap-3 rounded-md px-2.5 py-2 transition-colors focus-visible:outline-offset-[-2px] ${open ? "bg-accent-soft [--ground:var(--color-accent-soft)] forced-colors:outline-2" : "hover:bg-hover hover:[--ground:var(--color-hover)]"}`}
    >
      <ChatAvatar chat={chat} />
      <span className="min-w-0 flex-1">
        <span className="flex items-baseline gap-2">
          <span className={`flex-1 truncate text-base ${unread ? "font-semibold" : "font-medium"}`}>
            {chatTitle(chat, me)}
          </span>
          <time className="shrink-0 text-xs text-ink-3" dateTime={chat.updated_at}>
            {shortTime(chat.last_message?.created_at ?? chat.updated_at)}
          </time>
        </span>
        <span className="flex items-center gap-1.5">
          <Preview chat={chat} open={open} />
          <Badges unread={chat.unread} />
        </span>
      </span>
    </Link>
  );
});

export function ChatAvatar({ chat, size = 40 }: { chat: LocalChat; size?: GroupSize }) {
  const me = useSelf();
  const members = others(chat, me);
  const [first] = members;
  if (chat.kind === "direct" && first) return <Avatar account={first} size={size} />;
  return <GroupAvatar accounts={members} size={size} />;
}

function Preview({ chat, open }: { chat: LocalChat; open: boolean }) {
  const me = useSelf();
  const { actors } = useTyping(chat.id);
  const [draft] = useDraft(chat.id);
  const [typist] = actors;
  const last = chat.last_message;
  if (typist) {
    return (
      <span className="flex-1 truncate text-sm text-accent">{typist.display_name} is typing…</span>
    );
  }
  if (draft.trim() !== "" && chat.unread_count === 0 && !open) {
    return (
      <span className="flex-1 truncate text-sm text-ink-3">
        <span className="text-danger">Draft:</span> {draft}
      </span>
    );
  }
  const mine = last?.sender.username === me.username;
  const who = mine
    ? "You: "
    : last && chat.kind === "group"
      ? `${firstName(last.sender.display_name)}: `
      : "";
  const text = last ? plainText(last.content, 90) || "…" : "No messages yet";
  return (
    <span className="flex-1 truncate text-sm text-ink-3">
      {who}
      {text}
    </span>
  );
}

/** People, agents and mentions apart: they do not ask for the same haste. */
function Badges({ unread }: { unread: LocalChat["unread"] }) {
  const { human, agent, mentions } = unread;
  return (
    <>
      {mentions > 0 && (
        <Badge look="bg-accent-fill text-on-accent" label={count(mentions, "mention")}>
          <Icon name="at" size={11} />
        </Badge>
      )}
      {human > 0 && (
        <Badge look="bg-accent-fill text-on-accent" label={`${human} unread from people`}>
          {human > 99 ? "99+" : human}
        </Badge>
      )}
      {agent > 0 && (
        <Badge look="bg-sunken text-ink-2 rounded-[6px]!" label={`${agent} unread from agents`}>
          {agent > 99 ? "99+" : agent}
        </Badge>
      )}
    </>
  );
}

function Badge({
  look,
  label,
  children,
}: {
  look: string;
  label: string;
  children: React.ReactNode;
}) {
  return (
    <span
      role="img"
      aria-label={label}
      title={label}
      className={`inline-flex h-4.5 min-w-4.5 shrink-0 items-center justify-center rounded-full px-1 text-2xs font-semibold tabular-nums ${look}`}
    >
      {children}
    </span>
  );
}
