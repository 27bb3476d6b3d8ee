import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { type KeyboardEvent, type ReactNode, useId, useState } from "react";
import { openDirect } from "../agents/sandbox.ts";
import { complain } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { chatTitle, nameOf, others } from "../lib/names.ts";
import { chatPath, navigate } from "../lib/router.ts";
import { shortTime } from "../lib/time.ts";
import { useFoundPeople } from "../people/PeoplePicker.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { IconButton } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { OwnerChip } from "../ui/OwnerChip.tsx";
import { ChatAvatar } from "./ChatItem.tsx";
import { Snippet, useFoundMessages } from "./search.tsx";

interface Entry {
  key: string;
  group: string;
  view: ReactNode;
  go: () => void;
}

interface SwitcherProps {
  onClose: () => void;
  onNewChat: () => void;
}

/** One field to go anywhere: conversations, people, messages, pages. */
export function Switcher({ onClose, onNewChat }: SwitcherProps) {
  const id = useId();
  const [query, setQuery] = useState("");
  const [at, setAt] = useState(0);
  const { entries, settled } = useEntries(query.trim(), onNewChat);
  const place = Math.min(at, entries.length - 1);
  const go = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.go();
  };
  const pressed = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(place + 1, entries.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(place - 1, 0));
    else if (event.key === "Enter") go(entries[place]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search and go to" bare wide onClose={onClose}>
      <div className="flex items-center gap-3 border-b border-line px-4">
        <span className="text-ink-3">
          <Icon name="search" />
        </span>
        <input
          role="combobox"
          aria-label="Search conversations, people and messages"
          aria-expanded={entries.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={entries[place] && `${id}-${place}`}
          aria-autocomplete="list"
          autoFocus
          autoComplete="off"
          placeholder="Search or go to…"
          value={query}
          onChange={(event) => {
            setQuery(event.target.value);
            setAt(0);
          }}
          onKeyDown={pressed}
          className="h-13 min-w-0 flex-1 bg-transparent text-md outline-none pointer-coarse:text-[1rem]"
        />
        <IconButton icon="close" label="Close" small className="-mr-1.5" onClick={onClose} />
      </div>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Results"
        className="min-h-40 overflow-y-auto p-2"
      >
        {entries.length === 0 && settled && (
          <p
            role="presentation"
            className="flex h-36 items-center justify-center px-4 text-sm text-ink-3"
          >
            <span className="truncate">Nothing found for «{query.trim()}».</span>
          </p>
        )}
        {entries.map((entry, index) => (
          <EntryRow
            key={entry.key}
            id={`${id}-${index}`}
            entry={entry}
            heading={entries[index - 1]?.group !== entry.group}
            active={index === place}
            onGo={() => go(entry)}
          />
        ))}
      </div>
    </Dialog>
  );
}

interface EntryRowProps {
  id: string;
  entry: Entry;
  heading: boolean;
  active: boolean;
  onGo: () => void;
}

function EntryRow({ id, entry, heading, active, onGo }: EntryRowProps) {
  return (
    <>
      {heading && (
        <div role="presentation" className="px-2.5 pt-2.5 pb-1 text-xs font-medium text-ink-3">
          {entry.group}
        </div>
      )}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys */}
      <div
        id={id}
        role="option"
        aria-selected={active}
        onClick={onGo}
        ref={(element) => {
          if (active) element?.scrollIntoView({ block: "nearest" });
        }}
        className={`flex cursor-pointer items-center gap-3 rounded-md px-2.5 py-2 hover:bg-hover hover:[--ground:var(--color-hover)] ${active ? "bg-hover [--ground:var(--color-hover)]" : "[--ground:var(--color-raised)]"}`}
      >
        {entry.view}
      </div>
    </>
  );
}

interface Entries {
  entries: Entry[];
  /** The server has answered what is asked now. */
  settled: boolean;
}

function useEntries(query: string, onNewChat: () => void): Entries {
  const client = useClient();
  const me = useSelf();
  const people = useFoundPeople(query) ?? [];
  const { found: messages, settled } = useFoundMessages(query);
  const { model } = client;
  const fits = (text: string) => text.toLowerCase().includes(query.toLowerCase());

  const placeOf = (chatId: string) => {
    const chat = model.get(`chat:${chatId}`);
    return chat?.kind === "group" ? chatTitle(chat, me) : undefined;
  };

  const chats = model
    .get("chats")
    .map((chatId) => model.get(`chat:${chatId}`))
    .filter((chat) => chat !== null)
    .filter((chat) => fits(chatTitle(chat, me)))
    .slice(0, query === "" ? 8 : 5)
    .map((chat) => ({
      key: chat.id,
      group: "Conversations",
      view: (
        <Line
          icon={<ChatAvatar chat={chat} size={32} />}
          title={chatTitle(chat, me)}
          account={chat.kind === "direct" ? others(chat, me)[0] : undefined}
        />
      ),
      go: () => navigate(chatPath(chat.id)),
    }));

  const pages: [string, IconName, () => void][] = [
    ["New conversation", "compose", onNewChat],
    ["My agents", "spark", () => navigate("/agents")],
    ["Settings", "settings", () => navigate("/settings")],
  ];
  const places = pages
    .filter(([title]) => fits(title))
    .map(([title, icon, go]) => ({
      key: title,
      group: "Go to",
      view: <Line icon={<Glyph icon={icon} />} title={title} />,
      go,
    }));

  if (query === "") return { entries: [...chats, ...places], settled };
  const found = people
    .filter(({ username }) => username !== me.username)
    .slice(0, 5)
    .map((account) => ({
      key: account.username,
      group: "People and agents",
      view: (
        <Line
          icon={<Avatar account={account} size={32} />}
          account={account}
          note={`@${account.username}`}
        />
      ),
      go: () => void openDirect(client, account.username).catch(complain),
    }));
  const said = messages.map(({ message, snippet }) => ({
    key: message.id,
    group: "Messages",
    view: (
      <Line
        icon={<Avatar account={message.sender} size={32} />}
        account={message.sender}
        place={placeOf(message.conversation_id)}
        note={<Snippet text={snippet} />}
        aside={shortTime(message.created_at)}
      />
    ),
    go: () => navigate(chatPath(message.conversation_id, message.id)),
  }));
  return { entries: [...chats, ...found, ...said, ...places], settled };
}

const Glyph = ({ icon }: { icon: IconName }) => (
  <span className="inline-flex size-8 items-center justify-center rounded-md bg-sunken text-ink-2">
    <Icon name={icon} size={16} />
  </span>
);

interface LineProps {
  icon: ReactNode;
  title?: string;
  /** Whom it is about; their name is the title if there is none. */
  account?: Account | undefined;
  /** The conversation it was said in. */
  place?: string | undefined;
  note?: ReactNode;
  aside?: string;
}

function Line({ icon, title, account, place, note, aside }: LineProps) {
  return (
    <>
      {icon}
      <span className="min-w-0 flex-1">
        <span className="flex flex-wrap items-baseline gap-x-1.5 text-base font-medium">
          <span className="min-w-0 break-words">
            {title ?? (account && nameOf(account))}
            {place && <span className="font-normal text-ink-3"> in {place}</span>}
          </span>
          {account && <OwnerChip account={account} />}
        </span>
        {note && <span className="line-clamp-2 text-sm break-words text-ink-3">{note}</span>}
      </span>
      {aside && <span className="shrink-0 text-xs text-ink-3">{aside}</span>}
    </>
  );
}
