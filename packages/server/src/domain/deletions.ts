import { counted } from "../changes/change.ts";
import { NOBODY } from "../rules/accounts.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { MessageRecord } from "../store/message-records.ts";
import { isNonEmpty } from "../store/non-empty.ts";
import type { ReadTx, Store, WriteTx } from "../store/store.ts";
import { dropTurnsOf, stopTurns } from "./turns.ts";

/** Messages deleted per unit of work, and tool calls erased, so that other units are not held up. */
const RECORDS_PER_UNIT = 100;

type DeletionPlace = Pick<ConversationRecord, "id" | "uuid" | "agent_count">;

/**
 * Deletes messages of a conversation for everybody and announces it. A streaming message is stopped
 * first. Messages that are deleted already are left out. Returns how many it deleted.
 */
export async function removeMessages(
  tx: WriteTx,
  conversation: DeletionPlace,
  uuids: readonly string[],
): Promise<number> {
  for (const message of await recordsOf(tx, uuids)) {
    if (message.finalized) continue;
    const turn = await tx.turnOfMessage(message);
    if (!turn) throw new Error(`message ${message.uuid} is streaming without a turn`);
    await stopTurns(tx, [turn]);
  }
  const messages = await recordsOf(tx, uuids);
  if (!isNonEmpty(messages)) return 0;
  const seq = await tx.deleteMessages(messages, Date.now());
  const ids = messages.map(({ uuid }) => uuid);
  // A tool whose form is deleted gets no answer.
  for (const id of await tx.cancelElicitations(ids)) tx.emit({ kind: "elicitation_answered", id });
  await dropTurnsOf(tx, conversation, ids);
  const params = { conversation_id: conversation.uuid, ids };
  tx.emit(counted("events.messageDeleted", params, conversation.uuid, seq));
  return ids.length;
}

/** The messages among these that are not deleted. */
async function recordsOf(tx: ReadTx, uuids: readonly string[]): Promise<MessageRecord[]> {
  const found = await Promise.all(uuids.map((uuid) => tx.message(uuid)));
  return found.filter((message) => message !== null && !message.deleted) as MessageRecord[];
}

export type Units = Pick<Store, "read" | "write">;

/** Called between two units of work, with the number of messages deleted since the last call. */
export type DeletionProgress = (deleted: number) => unknown;

/** Deletes messages of any conversations for everybody, in small units of work. */
export async function removeInBatches(
  store: Pick<Store, "write">,
  messages: readonly MessageRecord[],
  progress: DeletionProgress,
): Promise<void> {
  for (const [conversation, uuids] of batches(messages, (each) => each.conversation_uuid)) {
    await progress(await store.write((tx) => removeFrom(tx, conversation, uuids)));
  }
}

/** The uuids of records for units of work, each of one conversation. */
export function* batches<Each extends { readonly uuid: string }, Conversation>(
  records: readonly Each[],
  conversationOf: (each: Each) => Conversation,
): Generator<[Conversation, string[]]> {
  for (const [conversation, each] of Map.groupBy(records, conversationOf)) {
    const uuids = each.map(({ uuid }) => uuid);
    while (uuids.length > 0) yield [conversation, uuids.splice(0, RECORDS_PER_UNIT)];
  }
}

async function removeFrom(tx: WriteTx, conversationUuid: string, uuids: readonly string[]) {
  const conversation = await tx.conversation(conversationUuid, NOBODY);
  return conversation ? removeMessages(tx, conversation, uuids) : 0;
}

/** Deletes all messages of a conversation for everybody, also an erased one, in small units of work. */
export async function removeAllIn(
  store: Units,
  conversation: DeletionPlace,
  progress: DeletionProgress,
): Promise<void> {
  const query = { conversationId: conversation.id, viewerId: NOBODY, limit: RECORDS_PER_UNIT };
  for (;;) {
    const { items } = await store.read((tx) => tx.messagePage(query));
    if (items.length === 0) return;
    const uuids = items.map((message) => message.id);
    await progress(await store.write((tx) => removeMessages(tx, conversation, uuids)));
  }
}
