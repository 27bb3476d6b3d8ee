import type { Account } from "@parley/protocol";
import { nameOf } from "../../lib/names.ts";
import { Avatar } from "../../ui/Avatar.tsx";
import { OwnerChip } from "../../ui/OwnerChip.tsx";

interface MentionListProps {
  id: string;
  offered: Account[];
  absent: readonly Account[];
  active: number;
  take: (index: number) => void;
}

/** The accounts that the handle at the caret may mean. */
export function MentionList({ id, offered, absent, active, take }: MentionListProps) {
  return (
    <div
      id={`${id}-list`}
      role="listbox"
      aria-label="People and agents to mention"
      className="absolute inset-x-0 bottom-full z-20 mb-2 max-h-72 animate-in overflow-y-auto rounded-lg bg-raised p-1 shadow-pop sm:max-w-sm"
    >
      {offered.map((account, index) => (
        // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
        <div
          key={account.username}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          ref={index === active ? intoView : undefined}
          onPointerDown={(event) => {
            event.preventDefault();
            take(index);
          }}
          className={`flex cursor-pointer items-center gap-2.5 rounded-md px-2 py-1.5 hover:bg-hover ${index === active ? "bg-hover" : ""}`}
        >
          <Avatar account={account} size={24} />
          <span className="flex min-w-0 flex-1 flex-wrap items-baseline gap-x-2">
            <span className="min-w-0 text-base font-medium break-words">{nameOf(account)}</span>
            <OwnerChip account={account} />
            <span className="min-w-0 text-sm break-all text-ink-3">@{account.username}</span>
            {absent.includes(account) && (
              <span className="text-sm text-ink-3">not in this group</span>
            )}
          </span>
        </div>
      ))}
    </div>
  );
}

const intoView = (element: HTMLElement | null) => element?.scrollIntoView({ block: "nearest" });
