import type { InputOf } from "@parley/protocol";
import { mentionedHandles } from "@parley/protocol/markup";
import { messageChanged } from "../changes/change.ts";
import { checkItems } from "../rules/failure.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { ImportedMessage, ImportResult } from "../store/imported-messages.ts";
import { isNonEmpty } from "../store/non-empty.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { accountsNamed } from "./users.ts";

/** A message as the product that has its history describes it. */
type PastMessage = InputOf<"importMessages">["messages"][number];

/**
 * Stores messages of a conversation's past. The clients of its participants receive them, so that
 * their copies stay complete, but no agent answers.
 */
export async function importMessages(
  tx: WriteTx,
  conversation: ConversationRecord,
  past: readonly PastMessage[],
): Promise<ImportResult[]> {
  const senders = await sendersOf(tx, conversation, past);
  const mentioned = await mentionedIn(tx, conversation, past);
  const messages = past.flatMap(({ created_at, ...message }): ImportedMessage[] => {
    const sender = senders.get(message.sender);
    if (!sender) return [];
    const mentions = mentionedHandles(message.content).filter((handle) => mentioned.has(handle));
    return [{ ...message, sender, mentions, at: Date.parse(created_at) }];
  });
  if (!isNonEmpty(messages)) return [];
  const results = await tx.importMessages(conversation, messages);
  for (const { inserted } of results) {
    if (inserted) tx.emit(messageChanged("events.messageNew", inserted, inserted.seq));
  }
  return results;
}

/** Throws `bad_request` when a message is from the future. */
export function checkTimes(past: readonly PastMessage[]): void {
  const now = Date.now();
  const pathOf = (place: number) => `messages.${place}.created_at`;
  checkItems(past, pathOf, (each) => Date.parse(each.created_at) > now && "is in the future");
}

/** The senders by the names given. Throws `bad_request` when one does not take part, or is erased. */
async function sendersOf(
  tx: ReadTx,
  conversation: ConversationRecord,
  past: readonly PastMessage[],
): Promise<ReadonlyMap<string, AccountRecord>> {
  const names = past.map(({ sender }) => sender);
  const accounts = await accountsNamed(tx, names);
  const usernames = [...accounts.values()].map(({ username }) => username);
  const joined = new Set(await tx.participantsAmong(conversation.id, usernames));
  const senders = new Map([...accounts].filter(([, { username }]) => joined.has(username)));
  const problemOf = ({ sender }: PastMessage) =>
    !senders.has(sender) && "is not a participant of the conversation";
  checkItems(past, (place) => `messages.${place}.sender`, problemOf);
  return senders;
}

/** The participants that any of the messages mention. */
async function mentionedIn(
  tx: ReadTx,
  conversation: ConversationRecord,
  past: readonly PastMessage[],
): Promise<ReadonlySet<string>> {
  const handles = new Set(past.flatMap(({ content }) => mentionedHandles(content)));
  if (handles.size === 0) return new Set();
  return new Set(await tx.participantsAmong(conversation.id, [...handles]));
}
