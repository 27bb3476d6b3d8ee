import { useBlocked } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useCallback } from "react";
import { ownerOf } from "./names.ts";

/** Stands in place of what somebody wrote whom the person blocked. */
export const BLOCKED_MESSAGE = "Message of somebody you blocked";

type Named = Pick<Account, "username">;

/** Whether the person is blocked, or the owner of the agent. */
export const isAmong = (blocked: readonly string[], { username }: Named) =>
  blocked.includes(ownerOf(username));

/** Whether an account is blocked: a block of a person includes their agents. */
export function useIsBlocked(): (account: Named) => boolean {
  const blocked = useBlocked();
  return useCallback((account) => isAmong(blocked, account), [blocked]);
}
