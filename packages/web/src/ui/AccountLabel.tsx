import type { Account } from "@parley/protocol";
import type { ReactNode } from "react";
import { nameOf } from "../lib/names.ts";
import { Avatar } from "./Avatar.tsx";
import { OwnerChip } from "./OwnerChip.tsx";

interface AccountLabelProps {
  account: Account;
  isSelf?: boolean;
  /** Stands behind the username. */
  note?: ReactNode;
}

/** An account in a list: avatar, name, owner and username. */
export function AccountLabel({ account, isSelf = false, note }: AccountLabelProps) {
  return (
    <>
      <Avatar account={account} size={32} />
      <span className="min-w-0 flex-1">
        <span className="flex flex-wrap items-baseline gap-x-1.5 text-base font-medium">
          <span className="min-w-0 break-words">{nameOf(account)}</span>
          {isSelf && <span className="font-normal text-ink-3">(you)</span>}
          <OwnerChip account={account} />
        </span>
        <span className="block text-xs break-all text-ink-3">
          @{account.username}
          {note}
        </span>
      </span>
    </>
  );
}
