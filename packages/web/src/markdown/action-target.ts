import type { Account, ComponentUse } from "@parley/protocol";
import { createContext, use } from "react";

/** The message that the components belong to. */
export interface Target {
  chatId: string;
  messageId: string;
  /** The components show their uses, and cannot be used. */
  isReadOnly: boolean;
  /** Uses of its components, the latest last. */
  uses: readonly ComponentUse[];
  /** The name of an account; «You» for oneself. */
  who: (account: Account) => string;
  isMe: (account: Account) => boolean;
}

/** Null where components are disabled: in people's messages, and while a message streams. */
export const ActionTarget = createContext<Target | null>(null);

const NONE: readonly ComponentUse[] = [];

/** Uses of the components with these tokens. */
export function useUses(tokens: readonly string[]): readonly ComponentUse[] {
  const target = use(ActionTarget);
  return target ? target.uses.filter(({ token }) => tokens.includes(token)) : NONE;
}
