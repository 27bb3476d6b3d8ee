import { useAside, usePiece } from "@parley/client/react";
import type { Account, ComponentUse } from "@parley/protocol";
import { createContext, use } from "react";
import { answersTool, isQuestionOver } from "../tools/questions.ts";

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
  /** Whether the agent that wrote the message is one's own, and the name of its owner. */
  isOwner: boolean;
  owner: string;
  /** The name of the agent. */
  agent: string;
}

/** Ids of the tool calls of the message. A card that asks for one of them is shown in another way. */
export const AskedCalls = createContext<readonly string[]>([]);

/** Null where components are disabled: in people's messages, and while a message streams. */
export const ActionTarget = createContext<Target | null>(null);

/**
 * Whether a component can be used, and if not why, where the person cannot see it. Tool calls are
 * decided by their own cards alone: any other button for one was not written by the server.
 */
export function useAvailability(token: string): { enabled: boolean; reason: string | null } {
  const target = use(ActionTarget);
  const isAnswer = answersTool(token);
  const isOver = useIsQuestionOver(isAnswer ? target : null);
  if (!target || target.isReadOnly || token.startsWith("call:")) {
    return { enabled: false, reason: null };
  }
  if (!isAnswer) return { enabled: true, reason: null };
  const id = token.replace(/^\w+:/, "");
  if (target.uses.some((use) => use.token.endsWith(`:${id}`))) {
    return { enabled: false, reason: null };
  }
  if (!target.isOwner) return { enabled: false, reason: `Only ${target.owner} can answer this.` };
  return isOver
    ? { enabled: false, reason: "This is not asked any more." }
    : { enabled: true, reason: null };
}

function useIsQuestionOver(target: Target | null): boolean {
  const { items } = usePiece(`messages:${target?.chatId ?? ""}`);
  const aside = useAside(target?.chatId ?? "");
  if (!target) return false;
  return [items, aside?.items ?? []].some((each) => isQuestionOver(target.messageId, each));
}

const NONE: readonly ComponentUse[] = [];

/** Uses of the components with these tokens. */
export function useUses(tokens: readonly string[]): readonly ComponentUse[] {
  const target = use(ActionTarget);
  return target ? target.uses.filter(({ token }) => tokens.includes(token)) : NONE;
}
