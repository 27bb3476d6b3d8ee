import type { Account, Message, SharedConversation } from "@parley/protocol";
import type { LocalChat } from "../types.ts";
import { type ChatState, loadedMessage } from "./state.ts";

export const setChat = (state: ChatState, chat: LocalChat): ChatState =>
  chat === state.chat ? state : { ...state, chat };

/** Has the conversation fetched, because events alone do not determine its state. */
export const invalidate = (state: ChatState): ChatState => ({
  ...state,
  invalidations: state.invalidations + 1,
});

/** A message as far as it is known: the latest of the conversation, or one that is loaded. */
export function knownMessage(state: ChatState, id: string): Message | undefined {
  const last = state.chat.last_message;
  return last?.id === id ? last : loadedMessage(state, id);
}

/**
 * The participants after a reply or an event. Lists and events contain only the first participants
 * of a large group: if all are known already, they stay until the next complete list.
 */
export function mergeParticipants(
  { chat, window }: ChatState,
  { participants, participant_count }: SharedConversation,
): Account[] {
  if (participants.length === participant_count || window === null) return participants;
  const listed = new Map(participants.map((account) => [account.username, account]));
  const known = chat.participants.map((account) => listed.get(account.username) ?? account);
  const names = new Set(known.map(({ username }) => username));
  return [...known, ...participants.filter(({ username }) => !names.has(username))];
}
