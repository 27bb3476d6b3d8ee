import type { Account, ComponentUse } from "@parley/protocol";
import { createContext, use } from "react";

/** The message whose components are shown. */
export interface Target {
  chatId: string;
  messageId: string;
  /** Who used which of its components, the latest last. */
  uses: readonly ComponentUse[];
  /** An account by name: «You» for the person themselves. */
  who: (account: Account) => string;
  isMe: (account: Account) => boolean;
}

/** Null where components are only to be looked at. */
export const ActionTarget = createContext<Target | null>(null);

const NONE: readonly ComponentUse[] = [];

/** Uses of those components of the message that have one of these tokens. */
export function useUses(tokens: readonly string[]): readonly ComponentUse[] {
  const target = use(ActionTarget);
  return target ? target.uses.filter(({ token }) => tokens.includes(token)) : NONE;
}
