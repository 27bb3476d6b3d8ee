import type { Reaction, ReactionSummary } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { iso } from "../../rules/time.ts";
import type { MessageRecord } from "../messages.ts";
import type { PlacedReaction } from "../reactions.ts";
import { PUBLIC_ACCOUNT } from "./accounts.ts";

/** A reaction with its reactor. */
export interface ReactionRow extends AccountRow {
  id: number;
  emoji: string;
  created_at: number;
}

/** Selects `ReactionRecord`s of messages that are not deleted. */
export const REACTION_RECORDS = `SELECT r.id AS place, m.uuid AS message_id,
    c.uuid AS conversation_id, r.emoji, r.created_at
  FROM reactions r JOIN messages m ON m.id = r.message_id AND m.deleted_at IS NULL
  JOIN conversations c ON c.id = m.conversation_id`;

/** Selects `ReactionRow`s of a message after a place. Parameter 3 is an emoji, or null for all. */
export const REACTIONS = `SELECT r.id, r.emoji, r.created_at, ${PUBLIC_ACCOUNT}
  FROM reactions r JOIN accounts a ON a.id = r.account_id
  WHERE r.message_id = $1 AND r.id > $2 AND r.emoji = coalesce($3, r.emoji)
  ORDER BY r.id LIMIT $4`;

export const INSERT_REACTION = `INSERT INTO reactions (message_id, account_id, emoji, created_at)
  VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`;

export const toReaction = (
  { uuid }: MessageRecord,
  reactor: AccountRow,
  { emoji, created_at }: Pick<ReactionRow, "emoji" | "created_at">,
): Reaction => ({
  message_id: uuid,
  reactor: publicAccount(reactor),
  emoji,
  created_at: iso(created_at),
});

export const toPlacedReaction = (message: MessageRecord, row: ReactionRow): PlacedReaction => ({
  place: row.id,
  reaction: toReaction(message, row, row),
});

export const repeatedReaction = ({ uuid }: MessageRecord) =>
  new Error(`message ${uuid} has this reaction already`);

export const missingReaction = ({ uuid }: MessageRecord) =>
  new Error(`message ${uuid} has no such reaction`);

export interface ReactionSummaryRow {
  message_id: number;
  emoji: string;
  count: number;
  reacted: boolean | number;
}

/** By message, in the order of the rows. */
export function toReactionSummaries(
  rows: readonly ReactionSummaryRow[],
): Map<number, ReactionSummary[]> {
  const summaries = new Map<number, ReactionSummary[]>();
  for (const { message_id, emoji, count, reacted } of rows) {
    const summary = { emoji, count, reacted: Boolean(reacted) };
    const others = summaries.get(message_id);
    if (others) others.push(summary);
    else summaries.set(message_id, [summary]);
  }
  return summaries;
}
