import { useAgents, useChatIds, useClient, useStatus } from "@parley/client/react";
import { deceptiveNames } from "@parley/protocol/text/names";
import { type KeyboardEvent, lazy, Suspense, useRef } from "react";
import { startNewChat, useSiblingChats } from "../agents/chats.ts";
import { showError } from "../lib/errors.ts";
import { useSelf } from "../lib/me.ts";
import { nameOf, others } from "../lib/names.ts";
import { useNewGroups } from "../lib/new-groups.ts";
import { useOperator } from "../lib/operator.ts";
import { meetsPeople, usePolicy } from "../lib/policy.ts";
import { navigate, operatePath } from "../lib/router.ts";
import { useNarrow } from "../lib/screen.ts";
import { keyNames } from "../lib/shortcuts.ts";
import { setTheme, useTheme } from "../lib/theme.ts";
import { signOut } from "../session/client.ts";
import { WaitingLink } from "../tools/WaitingLink.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { IconButton } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";
import { Logo } from "../ui/Logo.tsx";
import { Menu } from "../ui/Menu.tsx";
import { ChatItem } from "./ChatItem.tsx";
import { ListSkeleton } from "./Loading.tsx";

const Welcome = lazy(() => import("./Welcome.tsx"));

interface SidebarProps {
  open: string | null;
  hidden: boolean;
  onSearch: () => void;
  onNewChat: () => void;
}

/** The list of conversations: beside the page, or on a narrow screen in its place. */
export function Sidebar({ open, hidden, onSearch, onNewChat }: SidebarProps) {
  const isMain = useNarrow() && !hidden;
  const Name = isMain ? "h1" : "span";
  const mayStart = meetsPeople(usePolicy());
  return (
    // Only the role changes with the width: another element would lose the scroll position.
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles have names
    <div
      role={isMain ? "main" : "complementary"}
      aria-label="Conversations"
      className={`flex w-full shrink-0 flex-col border-line bg-surface md:w-76 md:border-r lg:w-80 ${hidden ? "max-md:hidden" : ""}`}
    >
      <div className="flex items-center gap-2.5 px-4 pt-3 pb-2">
        <Logo size={26} />
        <Name className="flex-1 text-lg font-semibold tracking-tight">Parley</Name>
        <NewAgentChat />
        {mayStart && <IconButton icon="compose" label="New conversation" onClick={onNewChat} />}
      </div>
      <div className="px-3 pb-2">
        <button
          type="button"
          onClick={onSearch}
          className="flex h-9 w-full items-center gap-2 rounded-md bg-sunken px-3 text-base text-ink-2 transition-colors hover:text-ink"
        >
          <Icon name="search" size={15} />
          <span className="flex-1 text-left">Search</span>
          <kbd className="hidden font-sans text-xs pointer-coarse:hidden md:inline">
            {keyNames.switcher}
          </kbd>
        </button>
      </div>
      <WaitingLink />
      <ChatList open={open} onNewChat={onNewChat} />
      <SidebarFooter />
    </div>
  );
}

/** Starts another conversation with one of one's own agents. */
function NewAgentChat() {
  const client = useClient();
  const agents = useAgents();
  const policy = usePolicy();
  if (agents.length === 0 || policy.start_chats === "none") return null;
  return (
    <Menu
      label="New chat with an agent"
      icon="chat"
      items={agents.map((agent) => ({
        icon: "spark",
        label: nameOf({ ...agent, kind: "agent" }),
        onSelect: () => void startNewChat(client, agent.username).catch(showError),
      }))}
    />
  );
}

interface ChatListProps {
  open: string | null;
  onNewChat: () => void;
}

function ChatList({ open, onNewChat }: ChatListProps) {
  const client = useClient();
  const ids = useChatIds();
  const status = useStatus();
  const isLoading = useRef(false);
  const confusable = useConfusableChats(ids);
  const siblings = useSiblingChats(ids);
  const waiting = ids.length === 0 && status === "connecting";
  useNewGroups(ids);
  const loadMoreAtEnd = (list: HTMLElement) => {
    const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 200;
    if (isLoading.current || !isAtEnd) return;
    isLoading.current = true;
    // Asked every time: before the first catch-up it is not known whether there are more. If it fails,
    // scrolling again asks again.
    void client.model
      .loadMoreChats()
      .catch(() => {})
      .finally(() => {
        isLoading.current = false;
      });
  };
  return (
    <nav
      aria-label="Conversation list"
      className="relative flex min-h-0 flex-1 flex-col gap-px overflow-y-auto px-2 pt-1 pb-2"
      onScroll={(event) => loadMoreAtEnd(event.currentTarget)}
      onKeyDown={moveInList}
    >
      {waiting ? (
        <ListSkeleton />
      ) : (
        ids.map((id) => (
          <ChatItem
            key={id}
            id={id}
            open={id === open}
            withUsername={confusable.has(id)}
            isSibling={siblings.has(id)}
          />
        ))
      )}
      {!waiting && ids.length === 0 && (
        <>
          <p className="px-4 py-10 text-center text-base text-ink-3 max-md:hidden">
            Your conversations will be listed here.
          </p>
          <div className="px-3 py-6 md:hidden">
            <Suspense>
              <Welcome onNewChat={onNewChat} />
            </Suspense>
          </div>
        </>
      )}
    </nav>
  );
}

/** Direct conversations whose title could be confused with another person's name, or one's own. */
function useConfusableChats(ids: readonly string[]): Set<string> {
  const me = useSelf();
  const { model } = useClient();
  const people = ids.flatMap((id) => {
    const chat = model.get(`chat:${id}`);
    const [other] = chat?.kind === "direct" ? others(chat, me) : [];
    return other?.kind === "human" ? [{ id, other }] : [];
  });
  const names = deceptiveNames([me, ...people.map(({ other }) => other)]);
  return new Set(people.filter(({ other }) => names.has(other.username)).map(({ id }) => id));
}

/** Arrows move between the rows, and between a row and the button of its menu. */
function moveInList(event: KeyboardEvent<HTMLElement>): void {
  const { key, altKey, target, currentTarget } = event;
  const rows = [...currentTarget.querySelectorAll(":scope > [data-row]")];
  // Not the rows of an open menu.
  const row = rows.find((each) => target instanceof Element && target.parentElement === each);
  if (altKey || !row) return;
  const at = rows.indexOf(row);
  const steps: Record<string, HTMLElement | null | undefined> = {
    ArrowDown: rows[at + 1]?.querySelector("a"),
    ArrowUp: rows[at - 1]?.querySelector("a"),
    ArrowRight: row.querySelector<HTMLElement>("[aria-haspopup]"),
    ArrowLeft: row.querySelector("a"),
  };
  const next = steps[key];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

const nextTheme = { system: "dark", dark: "light", light: "system" } as const;
const themeIcon = { system: "system", dark: "moon", light: "sun" } as const;

function SidebarFooter() {
  const me = useSelf();
  const client = useClient();
  const theme = useTheme();
  const { operates } = useOperator();
  return (
    <div className="flex items-center gap-1 border-t border-line p-2 pb-[max(0.5rem,env(safe-area-inset-bottom))]">
      <Link
        to="/settings"
        className="flex min-w-0 flex-1 items-center gap-2.5 rounded-md px-2 py-1.5 hover:bg-hover"
      >
        <Avatar account={me} size={32} />
        <span className="min-w-0">
          <span className="block truncate text-base font-medium">{me.display_name}</span>
          <span className="block truncate text-xs text-ink-3">@{me.username}</span>
        </span>
      </Link>
      <IconButton icon="spark" label="My agents" onClick={() => navigate("/agents")} />
      <Menu
        label="Menu"
        icon="settings"
        items={[
          { icon: "settings", label: "Settings", onSelect: () => navigate("/settings") },
          { icon: "spark", label: "My agents", onSelect: () => navigate("/agents") },
          ...(operates
            ? [
                {
                  icon: "shield",
                  label: "Operator pages",
                  onSelect: () => navigate(operatePath("state")),
                } as const,
              ]
            : []),
          {
            icon: themeIcon[theme],
            label: `Theme: ${theme}`,
            onSelect: () => setTheme(nextTheme[theme]),
          },
          { icon: "leave", label: "Sign out", onSelect: () => signOut(client) },
        ]}
      />
    </div>
  );
}
