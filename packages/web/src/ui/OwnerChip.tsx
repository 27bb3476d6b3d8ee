import type { Account } from "@parley/protocol";
import { useSelf } from "../lib/me.ts";
import { isMyAgent, ownerOf } from "../lib/names.ts";

/** The owner of an agent, for beside its name; renders nothing for a person. */
export function OwnerChip({ account }: { account: Pick<Account, "kind" | "username"> }) {
  const me = useSelf();
  if (account.kind !== "agent") return null;
  return <Chip>{isMyAgent(account, me) ? "yours" : `@${ownerOf(account.username)}`}</Chip>;
}

/** A small tag beside a name. */
export const Chip = ({ children }: { children: string }) => (
  <span className="inline-block max-w-32 shrink-0 truncate align-[-2px] rounded-xs bg-chip px-1.5 text-2xs font-medium text-ink-2">
    {children}
  </span>
);
