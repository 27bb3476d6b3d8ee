import type { ComponentUse, Message, ReactionSummary } from "@parley/protocol";
import { type ReactionSummaryRow, toReactionSummaries } from "../reactions.ts";
import { COMPONENT_USES, type ComponentUseRow, toComponentUse } from "../shared/components.ts";
import {
  detailsNeeded,
  MESSAGE,
  type MessageRow,
  NOT_HIDDEN,
  toMessage,
} from "../shared/messages.ts";
import { accountsById } from "./accounts.ts";
import { list, type Unit } from "./unit.ts";

/** Converts rows to messages as a viewer sees them. */
export async function viewMessages(
  unit: Unit,
  rows: readonly MessageRow[],
  viewerId: number,
): Promise<Message[]> {
  const needed = detailsNeeded(rows);
  const [streamed, reactions, uses, accounts] = await Promise.all([
    streamedTexts(unit, needed.streamed),
    reactionSummaries(unit, needed.reactions, viewerId),
    componentUses(unit, needed.uses),
    accountsById(unit, needed.accounts),
  ]);
  const details = {
    streamed: (id: number) => streamed.get(id),
    reactions: (id: number) => reactions.get(id),
    uses: (id: number) => uses.get(id),
    account: (id: number) => accounts.get(id),
  };
  return rows.map((row) => toMessage(row, details));
}

async function componentUses(
  unit: Unit,
  ids: readonly number[],
): Promise<Map<number, ComponentUse[]>> {
  if (ids.length === 0) return new Map();
  const rows = await unit.all<ComponentUseRow>(
    `${COMPONENT_USES} WHERE u.message_id = ANY($1::bigint[]) ORDER BY u.id`,
    list(ids),
  );
  const byMessage = Map.groupBy(rows, (row) => row.message_id);
  return new Map([...byMessage].map(([id, uses]) => [id, uses.map(toComponentUse)]));
}

async function reactionSummaries(
  unit: Unit,
  ids: readonly number[],
  viewerId: number,
): Promise<Map<number, ReactionSummary[]>> {
  if (ids.length === 0) return new Map();
  const rows = await unit.all<ReactionSummaryRow>(
    `SELECT message_id, emoji, count(*) AS count, bool_or(account_id = $2) AS reacted
     FROM reactions WHERE message_id = ANY($1::bigint[])
     GROUP BY message_id, emoji ORDER BY min(id)`,
    list(ids),
    viewerId,
  );
  return toReactionSummaries(rows);
}

/** The texts that messages have streamed so far. */
export async function streamedTexts(
  unit: Unit,
  ids: readonly number[],
): Promise<Map<number, string>> {
  const texts = new Map<number, string>();
  if (ids.length === 0) return texts;
  const rows = await unit.all<{ message_id: number; text: string }>(
    `SELECT message_id, text FROM chunks WHERE message_id = ANY($1::bigint[])
     ORDER BY message_id, byte_offset`,
    list(ids),
  );
  for (const { message_id, text } of rows) {
    texts.set(message_id, (texts.get(message_id) ?? "") + text);
  }
  return texts;
}

/** The latest message of each conversation that a viewer can see. */
export async function latestMessages(
  unit: Unit,
  conversationIds: readonly number[],
  viewerId: number,
): Promise<Map<number, Message>> {
  if (conversationIds.length === 0) return new Map();
  const rows = await unit.all<MessageRow>(
    `SELECT ${MESSAGE} FROM unnest($1::bigint[]) AS k(id)
     JOIN LATERAL (SELECT m.* FROM messages m WHERE m.conversation_id = k.id
       AND m.deleted_at IS NULL AND ${NOT_HIDDEN} ORDER BY m.seq DESC LIMIT 1) m ON true
     JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id`,
    list(conversationIds),
    viewerId,
  );
  const messages = await viewMessages(unit, rows, viewerId);
  return new Map(rows.map((row, place) => [row.conversation_id, messages[place] as Message]));
}
