import type { LocalChat, LocalMessage } from "@parley/client";
import { useChat, useDraft, useStatus, useTyping } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { memo, useEffect, useRef } from "react";
import { useChatTitle } from "../agents/openings.ts";
import { useUnsentMessage } from "../chat/unsent-message.ts";
import { messageLine } from "../files/describe.ts";
import { BLOCKED_MESSAGE, useIsBlocked } from "../lib/blocked.ts";
import { useSelf } from "../lib/me.ts";
import { chatTitle, count, nameOf, others, shortName, splitTitle } from "../lib/names.ts";
import { markOpened, useIsNewGroup } from "../lib/new-groups.ts";
import { chatPath } from "../lib/router.ts";
import { shortTime } from "../lib/time.ts";
import { useToday } from "../lib/today.ts";
import { useTouch } from "../lib/touch.ts";
import { Avatar, GroupAvatar, type GroupSize } from "../ui/Avatar.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";
import type { MenuHandle } from "../ui/Menu.tsx";
import { Chip, OwnerChip } from "../ui/OwnerChip.tsx";
import { ChatMenu } from "./ChatMenu.tsx";

interface ChatItemProps {
  id: string;
  open: boolean;
  /** Show the username, because another conversation has a similar name. */
  withUsername: boolean;
  /** There are other conversations with the same agent. */
  isSibling: boolean;
}

export const ChatItem = memo(function ChatItem(props: ChatItemProps) {
  const { id, open, withUsername, isSibling } = props;
  const chat = useChat(id);
  const me = useSelf();
  const link = useRef<HTMLAnchorElement>(null);
  const known = chat !== null;
  const isOnline = useStatus() === "online";
  const today = new Date(useToday());
  const menu = useRef<MenuHandle>(null);
  const openMenu = () => menu.current?.open();
  const touch = useTouch({ onLongPress: openMenu, isControl: true });
  // Scrolls the open conversation into view, and again once the conversations above it are loaded.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is complete when the client is online
  useEffect(() => {
    if (open && known) link.current?.scrollIntoView({ block: "nearest" });
  }, [open, known, isOnline]);
  const isNew = useIsNewGroup(id);
  useEffect(() => {
    if (open) markOpened(id);
  }, [open, id]);
  if (!chat || (isUnwritten(chat, me) && !open)) return null;
  const unread = chat.unread_count > 0;
  const [other] = chat.kind === "direct" ? others(chat, me) : [];
  const title = chatTitle(chat, me);
  return (
    <div data-row className="group/row relative shrink-0">
      <Link
        {...touch}
        ref={link}
        onContextMenu={(event) => {
          event.preventDefault();
          openMenu();
        }}
        to={chatPath(id)}
        aria-current={open ? "page" : undefined}
        className={`flex items-center gap-3 rounded-md px-2.5 py-2 transition-colors focus-visible:outline-offset-[-2px] ${open ? "bg-selected shadow-[inset_3px_0_var(--color-accent)] [--ground:var(--color-selected)] forced-colors:outline-2" : "hover:bg-hover hover:[--ground:var(--color-hover)]"}`}
      >
        <ChatAvatar chat={chat} />
        <span className="min-w-0 flex-1">
          <span className="flex items-center gap-1.5">
            <span
              className={`flex min-w-0 text-base leading-5 ${unread || open || isNew ? "font-semibold" : "font-medium"}`}
            >
              <ChatTitle chat={chat} isSibling={isSibling} />
            </span>
            {other && <AgentChip account={other} withName={isSibling || chat.title !== null} />}
            {isNew && <Chip narrow>New</Chip>}
            <time
              // The button of the menu takes its place.
              className={`ml-auto shrink-0 pl-0.5 text-xs leading-5 not-pointer-coarse:group-hover/row:invisible group-has-[button:focus-visible,button[aria-expanded=true]]/row:invisible ${unread ? "text-accent" : "text-ink-3"}`}
              dateTime={chat.updated_at}
            >
              {shortTime(chat.last_message?.created_at ?? chat.updated_at, today)}
            </time>
          </span>
          <span className="mt-0.5 flex items-center gap-1.5">
            {other && withUsername && (
              <span className="max-w-[calc(100%-3rem)] shrink-0 truncate text-xs text-ink-2">
                @{other.username}
              </span>
            )}
            <Preview chat={chat} open={open} />
            <Badges unread={chat.unread} />
          </span>
        </span>
      </Link>
      <ChatMenu chat={chat} title={title} ref={menu} />
    </div>
  );
});

/** Somebody else has opened a direct conversation, and written nothing yet. */
const isUnwritten = ({ kind, seq, created_by }: LocalChat, me: Account) =>
  kind === "direct" && seq === 0 && created_by.username !== me.username;

const ChatTitle = ({ chat, isSibling }: { chat: LocalChat; isSibling: boolean }) => (
  <Title text={useChatTitle(chat, isSibling)} />
);

/** Whose agent it is, or its name if the title does not say it. */
function AgentChip({ account, withName }: { account: Account; withName: boolean }) {
  if (!withName || account.kind !== "agent") return <OwnerChip account={account} narrow />;
  return <Chip narrow>{nameOf(account)}</Chip>;
}

/** A title in one line. A long one is cut before its end, where similar ones differ. */
function Title({ text }: { text: string }) {
  const { start, end } = splitTitle(text);
  if (end === "") return <span className="truncate">{text}</span>;
  return (
    <>
      <span aria-hidden="true" title={text} dir="auto" className="flex min-w-0">
        <span className="truncate whitespace-pre">{start}</span>
        <span className="max-w-3/4 shrink-0 truncate whitespace-pre">{end}</span>
      </span>
      <span className="sr-only">{text}</span>
    </>
  );
}

export function ChatAvatar({ chat, size = 40 }: { chat: LocalChat; size?: GroupSize }) {
  const me = useSelf();
  const members = others(chat, me);
  const [first] = members;
  if (chat.kind === "direct" && first) return <Avatar account={first} size={size} />;
  return <GroupAvatar accounts={members} pictureId={chat.picture_id ?? null} size={size} />;
}

function Preview({ chat, open }: { chat: LocalChat; open: boolean }) {
  const me = useSelf();
  const { actors } = useTyping(chat.id);
  const [draft] = useDraft(chat.id);
  const isBlocked = useIsBlocked();
  const typist = actors.find((actor) => !isBlocked(actor));
  const last = chat.last_message;
  const unsent = useUnsentMessage(chat.id);
  if (unsent?.delivery === "failed") return <UnsentPreview message={unsent} />;
  if (typist) {
    return (
      <span className="flex-1 truncate text-sm text-accent">{shortName(typist)} is typing…</span>
    );
  }
  if (draft.trim() !== "" && chat.unread_count === 0 && !open) {
    return (
      <span className="flex-1 truncate text-sm text-ink-3">
        <span className="text-danger">Draft:</span> {draft}
      </span>
    );
  }
  if (unsent) return <UnsentPreview message={unsent} />;
  if (last && chat.kind === "group" && isBlocked(last.sender)) {
    return <span className="flex-1 truncate text-sm text-ink-3">{BLOCKED_MESSAGE}</span>;
  }
  const who = last ? senderPrefix(last.sender, chat, me) : "";
  const text = last ? messageLine(last, 90, me) || "…" : "No messages yet";
  return (
    <span className="flex-1 truncate text-sm text-ink-3">
      {who}
      {text}
    </span>
  );
}

/** A message of one's own that failed or waits to be sent. */
function UnsentPreview({ message }: { message: LocalMessage }) {
  const text = messageLine(message, 90);
  if (message.delivery === "failed") {
    return (
      <span className="flex-1 truncate text-sm text-ink-3">
        <span className="text-danger">Not sent:</span> {text}
      </span>
    );
  }
  return (
    <span className="flex min-w-0 flex-1 items-center gap-1 text-sm text-ink-3">
      <span role="img" aria-label="Sending" title="Sending" className="shrink-0">
        <Icon name="clock" size={12} />
      </span>
      <span className="truncate">You: {text}</span>
    </span>
  );
}

/** The sender of the last message, unless the title already says it. */
function senderPrefix(sender: Account, chat: LocalChat, me: Account): string {
  if (sender.username === me.username) return "You: ";
  if (chat.kind === "direct") return "";
  return `${shortName(sender)}: `;
}

/** Unread messages of people and of agents, and mentions: separate, as they differ in urgency. */
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
        <Badge look="bg-chip text-ink-2 rounded-[6px]!" label={`${agent} unread from agents`}>
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
