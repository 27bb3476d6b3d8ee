import type { LocalChat } from "@parley/client";
import { useClient } from "@parley/client/react";
import { lazy, type Ref, Suspense, useState } from "react";
import { chatPath, DETAILS, navigate } from "../lib/router.ts";
import { Menu, type MenuHandle, type MenuItem } from "../ui/Menu.tsx";

const LeaveGroup = lazy(() => import("../chat/details/LeaveGroup.tsx"));

interface ChatMenuProps {
  chat: LocalChat;
  /** The name of the conversation. */
  title: string;
  ref: Ref<MenuHandle>;
}

/**
 * The menu of a row of the list. Its button is visible while the row is pointed at or has the focus;
 * touch screens have a long press instead.
 */
export function ChatMenu({ chat, title, ref }: ChatMenuProps) {
  const { model } = useClient();
  const [isLeaving, setLeaving] = useState(false);
  const isGroup = chat.kind === "group";
  const items: (MenuItem | false)[] = [
    { icon: "next", label: "Open", onSelect: () => navigate(chatPath(chat.id)) },
    chat.unread_count > 0 && {
      icon: "check",
      label: "Mark as read",
      onSelect: () => model.markRead(chat.id),
    },
    {
      icon: isGroup ? "users" : "info",
      label: isGroup ? "Members and agents" : "Details",
      onSelect: () => navigate(chatPath(chat.id, DETAILS)),
    },
    isGroup && {
      icon: "leave",
      label: "Leave group",
      danger: true,
      onSelect: () => setLeaving(true),
    },
  ];
  return (
    <>
      <Menu
        ref={ref}
        label={`Menu of ${title}`}
        small
        // The arrow key leads to it from its row: the list has only one stop for Tab per row.
        tabIndex={-1}
        // A long press may hit another row than it was meant for.
        header={<p className="truncate px-3 pb-1 text-sm text-ink-3 md:hidden">{title}</p>}
        items={items.filter((item) => item !== false)}
        className="absolute top-1.5 right-2 size-6! bg-raised opacity-0 shadow-low group-hover/row:opacity-100 focus-visible:opacity-100 aria-expanded:opacity-100 pointer-coarse:sr-only"
      />
      <Suspense>
        {isLeaving && <LeaveGroup chat={chat} onClose={() => setLeaving(false)} />}
      </Suspense>
    </>
  );
}
