import type { LocalChat, LocalMessage } from "@parley/client";
import { createContext, use } from "react";

export interface Deletion {
  messageId: string;
  scope: "me" | "everyone";
}

/** Which picture of which message is open. */
export interface OpenPicture {
  message: LocalMessage;
  /** The place of the picture among the pictures of the message. */
  index: number;
}

/** Shared by the components of a conversation. */
export interface ChatContextValue {
  chat: LocalChat;
  /** The server refuses new messages, edits, reactions and component actions. */
  isReadOnly: boolean;
  /** Usernames of people whose name could be confused with another name in the conversation. */
  confusable: ReadonlySet<string>;
  onReply: (message: LocalMessage) => void;
  onEdit: (message: LocalMessage) => void;
  /** Moves a message that could not be sent into the composer. */
  onReturnToComposer: (message: LocalMessage) => void;
  /** Scrolls to a message, and loads its part of the history if necessary. */
  onJump: (messageId: string) => void;
  /** Opens the actions sheet of a message. */
  onActions: (message: LocalMessage) => void;
  /** Shows who reacted to a message. */
  onReactors: (messageId: string) => void;
  onReceipt: (messageId: string) => void;
  /** Asks for a reason, then reports a message to the operators. */
  onReport: (messageId: string) => void;
  /** Asks, then deletes a message for oneself or for everyone. */
  onDelete: (deletion: Deletion) => void;
  /** Opens a picture of a message over the whole window. */
  onPicture: (picture: OpenPicture) => void;
}

export const ChatContext = createContext<ChatContextValue | null>(null);

export function useChatContext(): ChatContextValue {
  const context = use(ChatContext);
  if (!context) throw new Error("useChatContext needs a ChatContext around it");
  return context;
}
