import type { Account } from "@parley/protocol";
import { useSelf } from "../lib/me.ts";
import { isMyAgent, ownerOf } from "../lib/names.ts";

interface OwnerChipProps {
  account: Pick<Account, "kind" | "username">;
  narrow?: boolean;
}

/** The owner of an agent, for beside its name; renders nothing for a person. */
export function OwnerChip({ account, narrow = false }: OwnerChipProps) {
  const me = useSelf();
  if (account.kind !== "agent") return null;
  return (
    <Chip narrow={narrow}>
      {isMyAgent(account, me) ? "yours" : `@${ownerOf(account.username)}`}
    </Chip>
  );
}

interface ChipProps {
  /** For a list, where the name needs the room. */
  narrow?: boolean;
  children: string;
}

/** A small tag beside a name. */
export const Chip = ({ narrow = false, children }: ChipProps) => (
  <span
    title={children}
    className={`inline-block shrink-0 ${narrow ? "max-w-20" : "max-w-32"} truncate align-[-2px] rounded-xs bg-chip px-1.5 text-2xs font-medium text-ink-2`}
  >
    {children}
  </span>
);
