import type { Client, LocalChat } from "@parley/client";
import { useAgents, useClient } from "@parley/client/react";
import type { Account, AgentProfile } from "@parley/protocol";
import type { ReactNode } from "react";
import { startNewChat } from "../agents/chats.ts";
import { useOneChatTitle } from "../agents/openings.ts";
import { openDirect } from "../agents/sandbox.ts";
import { showError } from "../lib/errors.ts";
import { useSelf } from "../lib/me.ts";
import { chatTitle, nameOf, others } from "../lib/names.ts";
import { useOperator } from "../lib/operator.ts";
import { meetsPeople, useMayStart, usePolicy } from "../lib/policy.ts";
import { chatPath, navigate, operatePath } from "../lib/router.ts";
import { setTheme } from "../lib/theme.ts";
import { shortTime } from "../lib/time.ts";
import { usePeopleSearch } from "../people/people-search.ts";
import { signOut } from "../session/client.ts";
import { Avatar } from "../ui/Avatar.tsx";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { OwnerChip } from "../ui/OwnerChip.tsx";
import { ChatAvatar } from "./ChatItem.tsx";
import { rank, ranked } from "./rank.ts";
import { Snippet, useMessageSearch } from "./search.tsx";

/** A conversation, person, message or command that can be chosen. */
export interface Entry {
  key: string;
  section: string;
  view: ReactNode;
  go: () => void;
}

interface Entries {
  entries: Entry[];
  /** Why messages could not be searched. */
  problem: string | null;
  /** The server has answered the current query. */
  isSettled: boolean;
}

/** Entries that match a query: the section with the best match first, messages last. */
export function useEntries(query: string, onNewChat: () => void): Entries {
  const client = useClient();
  const me = useSelf();
  const people = usePeopleSearch(query).items ?? [];
  const { items: messages, problem, isSettled } = useMessageSearch(query);
  const { model } = client;
  const allChats = model
    .get("chats")
    .map((id) => model.get(`chat:${id}`))
    .filter((chat) => chat !== null);
  const { operates } = useOperator();
  const policy = usePolicy();
  const mayStart = useMayStart();
  const commands = commandsFor({ onNewChat, onLeave: () => signOut(client) });
  if (operates) commands.splice(4, 0, operatorCommand);
  if (!meetsPeople(policy)) commands.shift();
  const agents = useAgents().map((agent) => newChatCommand(client, agent));
  if (policy.start_chats !== "none") commands.push(...agents);
  if (query === "") {
    const recent = allChats.slice(0, 8).map((chat) => chatEntry(chat, me));
    return { entries: [...recent, ...commands.slice(0, 4).map(commandEntry)], problem, isSettled };
  }

  const chats = ranked(allChats, (chat) => rankOfChat(query, chat, me)).slice(0, 5);
  const shown = new Set(chats.flatMap(({ item }) => directWith(item, me)?.username ?? []));
  const otherPeople = people.filter(
    (account) =>
      account.username !== me.username && !shown.has(account.username) && mayStart(account),
  );
  const sections = [
    toSection(chats, (chat) => chatEntry(chat, me)),
    toSection(
      ranked(commands, ({ title, keywords }) => rank(query, title, keywords)),
      commandEntry,
    ),
    // The server matched them by rules of its own, so their rank is at least 1.
    toSection(
      otherPeople
        .slice(0, 5)
        .map((item) => ({ item, rank: Math.max(rankOfPerson(query, item), 1) })),
      (account) =>
        personEntry(account, () => void openDirect(client, account.username).catch(showError)),
    ),
  ].toSorted((one, other) => other.best - one.best);
  const found = (messages ?? []).map(({ message, snippet }) => ({
    key: message.id,
    section: "Messages",
    view: (
      <EntryLine
        icon={<Avatar account={message.sender} size={32} />}
        account={message.sender}
        place={placeOf(model.get(`chat:${message.conversation_id}`), me)}
        note={<Snippet text={snippet} />}
        aside={shortTime(message.created_at)}
      />
    ),
    go: () => navigate(chatPath(message.conversation_id, message.id)),
  }));
  return { entries: [...sections.flatMap(({ entries }) => entries), ...found], problem, isSettled };
}

const toSection = <Item,>(
  found: { item: Item; rank: number }[],
  entryOf: (item: Item) => Entry,
) => ({
  best: found[0]?.rank ?? 0,
  entries: found.map(({ item }) => entryOf(item)),
});

const directWith = (chat: LocalChat, me: Account) =>
  chat.kind === "direct" ? others(chat, me)[0] : undefined;

const rankOfPerson = (query: string, account: Account) =>
  rank(query.replace(/^@/, ""), nameOf(account), [account.username]);

function rankOfChat(query: string, chat: LocalChat, me: Account): number {
  const other = directWith(chat, me);
  if (!other) return rank(query, chatTitle(chat, me));
  return Math.max(rankOfPerson(query, other), chat.title ? rank(query, chat.title) : 0);
}

const placeOf = (chat: LocalChat | null, me: Account) =>
  chat?.kind === "group" ? chatTitle(chat, me) : undefined;

const chatEntry = (chat: LocalChat, me: Account): Entry => ({
  key: chat.id,
  section: "Conversations",
  view: (
    <EntryLine
      icon={<ChatAvatar chat={chat} size={32} />}
      title={<EntryTitle chat={chat} />}
      account={directWith(chat, me)}
    />
  ),
  go: () => navigate(chatPath(chat.id)),
});

const EntryTitle = ({ chat }: { chat: LocalChat }) => useOneChatTitle(chat);

const personEntry = (account: Account, go: () => void): Entry => ({
  key: account.username,
  section: "People and agents",
  view: (
    <EntryLine
      icon={<Avatar account={account} size={32} />}
      account={account}
      note={`@${account.username}`}
    />
  ),
  go,
});

interface Command {
  title: string;
  icon: IconName;
  /** Other words for it, in lower case. */
  keywords: string[];
  go: () => void;
}

const commandsFor = (on: { onNewChat: () => void; onLeave: () => void }): Command[] => [
  {
    title: "New conversation",
    icon: "compose",
    keywords: ["start", "group", "chat", "compose", "create", "message"],
    go: on.onNewChat,
  },
  {
    title: "My agents",
    icon: "spark",
    keywords: ["api", "key", "keys", "limits", "usage", "model", "instructions"],
    go: () => navigate("/agents"),
  },
  {
    title: "Waiting for you",
    icon: "bell",
    keywords: ["approve", "approvals", "reject", "pending", "decisions", "tools", "inbox"],
    go: () => navigate("/waiting"),
  },
  {
    title: "Settings",
    icon: "settings",
    keywords: ["preferences", "name", "password", "notifications", "sessions", "devices"],
    go: () => navigate("/settings"),
  },
  {
    title: "Dark theme",
    icon: "moon",
    keywords: ["night", "mode", "appearance", "colours", "colors"],
    go: () => setTheme("dark"),
  },
  {
    title: "Light theme",
    icon: "sun",
    keywords: ["day", "mode", "appearance", "colours", "colors"],
    go: () => setTheme("light"),
  },
  {
    title: "Theme of the system",
    icon: "system",
    keywords: ["mode", "appearance", "automatic"],
    go: () => setTheme("system"),
  },
  { title: "Sign out", icon: "leave", keywords: ["log out", "logout", "leave"], go: on.onLeave },
];

const newChatCommand = (client: Client, agent: AgentProfile): Command => ({
  title: `New chat with ${nameOf({ ...agent, kind: "agent" })}`,
  icon: "chat",
  keywords: ["start", "agent", agent.name, agent.username],
  go: () => void startNewChat(client, agent.username).catch(showError),
});

const operatorCommand: Command = {
  title: "Operator pages",
  icon: "shield",
  keywords: ["operate", "admin", "accounts", "suspend", "reports", "audit", "log", "statistics"],
  go: () => navigate(operatePath("state")),
};

const commandEntry = ({ title, icon, go }: Command): Entry => ({
  key: title,
  section: "Commands",
  view: <EntryLine icon={<CommandIcon icon={icon} />} title={title} />,
  go,
});

const CommandIcon = ({ icon }: { icon: IconName }) => (
  <span className="inline-flex size-8 items-center justify-center rounded-md bg-sunken text-ink-2">
    <Icon name={icon} size={16} />
  </span>
);

interface EntryLineProps {
  icon: ReactNode;
  title?: ReactNode;
  /** Its name is the title if no title is given. */
  account?: Account | undefined;
  /** The group that a message belongs to. */
  place?: string | undefined;
  note?: ReactNode;
  aside?: string;
}

function EntryLine({ icon, title, account, place, note, aside }: EntryLineProps) {
  return (
    <>
      {icon}
      <span className="min-w-0 flex-1">
        <span className="block text-base font-medium break-words">
          {title ?? (account && nameOf(account))} {account && <OwnerChip account={account} />}
          {place && <span className="font-normal text-ink-3"> in {place}</span>}
        </span>
        {note && <span className="line-clamp-2 text-sm break-words text-ink-3">{note}</span>}
      </span>
      {aside && <span className="shrink-0 text-xs text-ink-3">{aside}</span>}
    </>
  );
}
