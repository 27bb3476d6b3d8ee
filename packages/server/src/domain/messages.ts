import type { Message } from "@parley/protocol";
import { mentionedHandles } from "@parley/protocol/markup";
import { messageChanged } from "../changes/change.ts";
import { NOBODY } from "../rules/accounts.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { NewMessage } from "../store/message-records.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { blockableIds } from "./blocks.ts";
import { endArchives } from "./chat-states.ts";

/** Stores a message that no client has sent, and announces it. It mentions nobody, and no agent answers. */
export async function postMessage(
  tx: WriteTx,
  posted: Pick<NewMessage, "sender" | "content" | "action"> & {
    readonly conversation: ConversationRecord;
  } & Partial<Pick<NewMessage, "reply_to_id">>,
): Promise<Message> {
  const fixed = { client_msg_id: null, mentions: [], at: Date.now() };
  const message = await tx.insertMessage({ reply_to_id: null, ...posted, ...fixed });
  if (!message) throw new Error("a message without a client_msg_id was not inserted");
  tx.emit(messageChanged("events.messageNew", message, message.seq));
  await endArchives(tx, posted.conversation, posted.sender);
  return message;
}

/** Announces that a message has changed, as everybody sees it now. */
export async function announceEdit(tx: WriteTx, uuid: string, seq: number): Promise<void> {
  const [shown] = await tx.messageViews([uuid], NOBODY);
  if (shown) tx.emit(messageChanged("events.messageEdited", shown, seq));
}

/**
 * The usernames of the participants that the content of a message mentions, without those who have
 * blocked its sender. At most `most` different handles of the content are looked at, the first ones.
 */
export function mentionsIn(
  tx: ReadTx,
  content: string,
  conversationId: number,
  sender: Pick<AccountRecord, "id" | "owner_id">,
  most: number,
): Awaitable<string[]> {
  const handles = mentionedHandles(content).slice(0, most);
  return handles.length > 0 ? allowedMentions(tx, handles, conversationId, sender) : [];
}

async function allowedMentions(
  tx: ReadTx,
  handles: readonly string[],
  conversationId: number,
  sender: Pick<AccountRecord, "id" | "owner_id">,
): Promise<string[]> {
  const mentioned = await tx.participantsAmong(conversationId, handles);
  if (mentioned.length === 0) return mentioned;
  const accounts = await tx.accounts(mentioned);
  const ids = accounts.map(({ id }) => id);
  const blockers = await tx.blockersAmong(ids, blockableIds(sender));
  if (blockers.length === 0) return mentioned;
  const refusing = accounts.filter(({ id }) => blockers.includes(id));
  const names = new Set(refusing.map(({ username }) => username));
  return mentioned.filter((username) => !names.has(username));
}
