import { type DurableChange, durable } from "../changes/change.ts";
import type { AccountRecord } from "../store/accounts.ts";
import { type Awaitable, after } from "../store/awaitable.ts";
import type { AccountPlace } from "../store/chat-states.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { WriteTx } from "../store/store.ts";

/** Announces a member's view of a conversation, which the unit has changed, to its own clients. */
export async function announceChatState(
  tx: WriteTx,
  conversationId: number,
  { id, username }: AccountPlace,
): Promise<void> {
  const found = await tx.chatState(conversationId, id);
  if (!found) throw new Error(`account ${id} is no member of conversation ${conversationId}`);
  const { own_seq, conversation_id, state, last_read_seq } = found;
  const params = { conversation_id, state, last_read_seq };
  const frame = { method: "events.chatStateUpdated", params, own_seq } as const;
  tx.emit(durable(frame, { users: [username] }));
}

/** Announces to an account's own clients that it has cleared a conversation, or erased it for everybody. */
export const chatCleared = (
  { uuid: conversation_id, seq: cleared_seq }: ConversationRecord,
  { username }: AccountRecord,
  own_seq: number,
  erased = false,
): DurableChange => {
  const params = { conversation_id, cleared_seq, erased };
  const users = [username];
  return durable(
    { method: "events.chatCleared", params, own_seq },
    { users },
    erased ? { leaves: { conversation: conversation_id, users } } : {},
  );
};

/** Ends the archive of a conversation for those who are to see a new message of this sender. */
export const endArchives = (
  tx: WriteTx,
  { id, archived_count }: ConversationRecord,
  sender: AccountRecord,
): Awaitable<void> =>
  archived_count === 0
    ? undefined
    : after(tx.endArchives(id, sender, Date.now()), async (ended) => {
        for (const account of ended) await announceChatState(tx, id, account);
      });
