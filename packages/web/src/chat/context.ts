import type { LocalChat, LocalMessage } from "@parley/client";
import { createContext, use } from "react";

export interface Deletion {
  messageId: string;
  scope: "me" | "everyone";
}

/** What the parts of a conversation share. */
export interface ChatContextValue {
  chat: LocalChat;
  /** Usernames of people whose name alone could be taken for somebody else's here. */
  confusable: ReadonlySet<string>;
  onReply: (message: LocalMessage) => void;
  onEdit: (message: LocalMessage) => void;
  /** Puts a message that could not be sent back into the composer. */
  onReturnToComposer: (message: LocalMessage) => void;
  /** Shows a message, wherever in the history it stands. */
  onJump: (messageId: string) => void;
  /** Shows what can be done with a message, as a sheet. */
  onActions: (message: LocalMessage) => void;
  /** Shows who reacted to a message. */
  onReactors: (messageId: string) => void;
  onReceipt: (messageId: string) => void;
  /** Asks first, then deletes it for oneself or for everyone. */
  onDelete: (deletion: Deletion) => void;
}

export const ChatContext = createContext<ChatContextValue | null>(null);

export function useChatContext(): ChatContextValue {
  const tools = use(ChatContext);
  if (!tools) throw new Error("there is no conversation around this part");
  return tools;
}
