import type { Account, Policy } from "@parley/protocol";
import { use } from "react";
import { useSelf } from "./me.ts";
import { isMyAgent } from "./names.ts";
import { OperatorContext } from "./operator.ts";

/** What the person may do: everything until the server has answered. What is forbidden is not offered. */
export const usePolicy = (): Policy => use(OperatorContext).policy;

/** Whether the person may write to people whom they have not written to yet. */
export const meetsPeople = ({ start_chats }: Policy): boolean =>
  start_chats === "everyone" || start_chats === "shared";

/** Whether the person may start a conversation with an account, or add it to a group. */
export function useMayStart(): (account: Pick<Account, "kind" | "username">) => boolean {
  const policy = usePolicy();
  const me = useSelf();
  return (account) =>
    isMyAgent(account, me) ? policy.start_chats !== "none" : meetsPeople(policy);
}
