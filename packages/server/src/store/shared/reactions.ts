import type { Reaction, ReactionSummary } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { iso } from "../../rules/time.ts";
import type { MessageRecord } from "../messages.ts";
import type { PlacedReaction } from "../reactions.ts";

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
