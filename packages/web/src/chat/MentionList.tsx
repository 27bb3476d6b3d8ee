import type { Account } from "@parley/protocol";
import { nameOf } from "../lib/names.ts";
import { Avatar } from "../ui/Avatar.tsx";
import { OwnerChip } from "../ui/OwnerChip.tsx";

interface MentionListProps {
  id: string;
  accounts: Account[];
  active: number;
  onTake: (index: number) => void;
}

/** Whom the handle that is being typed may mean. */
export function MentionList({ id, accounts, active, onTake }: MentionListProps) {
  return (
    <div
      id={`${id}-list`}
      role="listbox"
      aria-label="People and agents to mention"
      className="absolute inset-x-0 bottom-full z-20 mb-2 max-h-72 animate-in overflow-y-auto rounded-lg bg-raised p-1 shadow-pop sm:max-w-sm"
    >
      {accounts.map((account, index) => (
        // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
        <div
          key={account.username}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === active}
          onPointerDown={(event) => {
            event.preventDefault();
            onTake(index);
          }}
          className={`flex cursor-pointer items-center gap-2.5 rounded-md px-2 py-1.5 hover:bg-hover ${index === active ? "bg-hover" : ""}`}
        >
          <Avatar account={account} size={24} />
          <span className="truncate text-base font-medium">{nameOf(account)}</span>
          <OwnerChip account={account} />
          <span className="flex-auto truncate text-sm text-ink-3">@{account.username}</span>
        </div>
      ))}
    </div>
  );
}
