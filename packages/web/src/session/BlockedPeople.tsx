import { useBlocked, useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useCallback } from "react";
import { showError } from "../lib/errors.ts";
import { useFetched } from "../lib/fetched.ts";
import { AccountLabel } from "../ui/AccountLabel.tsx";
import { Button } from "../ui/Button.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";

/** The people whom the person blocked. */
export function BlockedPeople() {
  const client = useClient();
  const blocked = useBlocked();
  // biome-ignore lint/correctness/useExhaustiveDependencies: the names are fetched again when the block list changes
  const fetched = useFetched(useCallback(() => allBlocked(client), [client, blocked]));
  const { value: accounts } = fetched;
  if (!accounts) return <Unfetched fetched={fetched} className="h-10" />;
  if (accounts.length === 0) return <p className="text-base text-ink-3">You blocked nobody.</p>;
  return (
    <ul aria-label="Blocked people" className="flex flex-col divide-y divide-line">
      {accounts.map((account) => (
        <li key={account.username} className="flex items-center gap-3 py-2.5 first:pt-0 last:pb-0">
          <AccountLabel account={account} />
          <Button
            size="small"
            aria-label={`Unblock ${account.display_name}`}
            onClick={() => void client.unblockUser({ username: account.username }).catch(showError)}
          >
            Unblock
          </Button>
        </li>
      ))}
    </ul>
  );
}

async function allBlocked(client: ReturnType<typeof useClient>): Promise<Account[]> {
  const accounts: Account[] = [];
  let cursor: string | null = null;
  do {
    const page = await client.getBlocked({ limit: 100, ...(cursor !== null && { cursor }) });
    accounts.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return accounts;
}
