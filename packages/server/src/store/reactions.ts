import type { Reaction, ReactionSummary } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import { iso } from "../rules/time.ts";
import { type AccountRecord, PUBLIC_ACCOUNT } from "./account-records.ts";
import { incrementCounter } from "./counters.ts";
import type { MessageRecord } from "./message-records.ts";
import type { Sql } from "./sql.ts";

export const reactionReads = {
  /** The account's reaction with this emoji; null when there is none. */
  async reaction(db: Sql, message: MessageRecord, reactor: AccountRecord, emoji: string) {
    const row = await db.get<{ created_at: number }>`
      SELECT created_at FROM reactions
      WHERE message_id = ${message.id} AND account_id = ${reactor.id} AND emoji = ${emoji}`;
    return row && toReaction(message, reactor, { emoji, ...row });
  },
  /** Reactions to a message, oldest first. */
  async reactions(db: Sql, query: ReactionsQuery): Promise<PlacedReaction[]> {
    const { message, emoji, after, limit } = query;
    const rows = await db.all<ReactionRow>`
      SELECT r.id, r.emoji, r.created_at, ${PUBLIC_ACCOUNT}
      FROM reactions r JOIN accounts a ON a.id = r.account_id
      WHERE r.message_id = ${message.id} AND r.id > ${after ?? 0}
        AND r.emoji = coalesce(${emoji ?? null}, r.emoji)
      ORDER BY r.id LIMIT ${limit}`;
    return rows.map((row) => ({ place: row.id, reaction: toReaction(message, row, row) }));
  },
  /** The different emoji of a message, and how many of its reactions are this account's. */
  async reactionCounts(db: Sql, message: MessageRecord, accountId: number) {
    await db.own(message.conversation_id);
    const rows = await db.all<{ emoji: string; own: number }>`
      SELECT emoji, count(*) FILTER (WHERE account_id = ${accountId}) AS own FROM reactions
      WHERE message_id = ${message.id} GROUP BY emoji`;
    return {
      emoji: rows.map(({ emoji }) => emoji),
      own: rows.reduce((sum, { own }) => sum + own, 0),
    };
  },
  /** Reactions of an account to messages that are not deleted, oldest first. */
  reactionsBy: (db: Sql, { accountId, after, limit }: ReactionsByQuery) =>
    db.all<ReactionRecord>`
      SELECT r.id AS place, m.uuid AS message_id, c.uuid AS conversation_id, r.emoji, r.created_at
      FROM reactions r JOIN messages m ON m.id = r.message_id AND m.deleted_at IS NULL
      JOIN conversations c ON c.id = m.conversation_id
      WHERE r.account_id = ${accountId} AND r.id > ${after} ORDER BY r.id LIMIT ${limit}`,
};

/** Each method increments the counter of the message's conversation and returns its new value. */
export const reactionWrites = {
  /** Throws when the reactor has this reaction on the message already. */
  async addReaction(db: Sql, message: MessageRecord, reaction: NewReaction): Promise<number> {
    const { reactor, emoji, at } = reaction;
    const row = { message_id: message.id, account_id: reactor.id, emoji, created_at: at };
    const version = await incrementCounter(db, message.conversation_id);
    const [added] = await Promise.all([
      db.insertNew("reactions", row),
      countReaction(db, message, 1, version),
    ]);
    if (!added) throw new Error(`message ${message.uuid} has this reaction already`);
    return version;
  },
  /** Throws when there is no such reaction. */
  async removeReaction(db: Sql, message: MessageRecord, reactorId: number, emoji: string) {
    const version = await incrementCounter(db, message.conversation_id);
    const [removed] = await Promise.all([
      db.remove("reactions", { message_id: message.id, account_id: reactorId, emoji }),
      countReaction(db, message, -1, version),
    ]);
    if (removed === 0) throw new Error(`message ${message.uuid} has no such reaction`);
    return version;
  },
};

export interface ReactionsQuery {
  message: MessageRecord;
  /** Return only reactions with this emoji. */
  emoji: string | undefined;
  /** Return only reactions after this `place`. */
  after: number | undefined;
  limit: number;
}

export interface ReactionsByQuery {
  accountId: number;
  /** Return only reactions after this `place`. */
  after: number;
  limit: number;
}

export interface ReactionRecord {
  /** Position in the list of reactions, to continue from. */
  readonly place: number;
  /** The UUID of the message. */
  readonly message_id: string;
  /** The UUID of its conversation. */
  readonly conversation_id: string;
  readonly emoji: string;
  readonly created_at: number;
}

export interface PlacedReaction {
  /** Position in the list of reactions, to continue from. */
  place: number;
  reaction: Reaction;
}

export interface NewReaction {
  reactor: AccountRecord;
  emoji: string;
  at: number;
}

interface ReactionRow extends AccountRow {
  id: number;
  emoji: string;
  created_at: number;
}

const toReaction = (
  { uuid }: MessageRecord,
  reactor: AccountRow,
  { emoji, created_at }: Pick<ReactionRow, "emoji" | "created_at">,
): Reaction => ({
  message_id: uuid,
  reactor: publicAccount(reactor),
  emoji,
  created_at: iso(created_at),
});

const countReaction = (db: Sql, message: MessageRecord, by: 1 | -1, version: number) =>
  db.change`
    UPDATE messages SET reactions = reactions + ${by}, version = ${version}
    WHERE id = ${message.id}`;

/** How often messages have each emoji, and whether the viewer reacted with it, in order of its first use. */
export async function reactionSummaries(db: Sql, messageIds: readonly number[], viewerId: number) {
  if (messageIds.length === 0) return new Map();
  const rows = await db.all<{ message_id: number; emoji: string; count: number; own: number }>`
    SELECT message_id, emoji, count(*) AS count,
      count(*) FILTER (WHERE account_id = ${viewerId}) AS own
    FROM reactions WHERE message_id = ANY(${messageIds}::bigint[])
    GROUP BY message_id, emoji ORDER BY min(id)`;
  const summaries = new Map<number, ReactionSummary[]>(messageIds.map((id) => [id, []]));
  for (const { message_id, emoji, count, own } of rows) {
    summaries.get(message_id)?.push({ emoji, count, reacted: own > 0 });
  }
  return summaries;
}
