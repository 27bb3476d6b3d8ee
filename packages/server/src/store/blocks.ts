import type { AddedBy, BlockList } from "@parley/protocol";
import { ACCOUNT, type AccountRecord, changeAccount } from "./account-records.ts";
import { incrementOwnCounter } from "./counters.ts";
import { type Sql, sql } from "./sql.ts";

/** Which people an account has blocked, and who may add whom to conversations. */
export const blockReads = {
  /** All that the account has blocked, ordered by username, with its own counter at that moment. */
  async blockList(db: Sql, accountId: number): Promise<BlockList> {
    // One statement, so that the list belongs to the counter.
    const rows = await db.all<{ own_seq: number; username: string | null }>`
      SELECT me.own_seq, a.username FROM accounts me
      LEFT JOIN blocks b ON b.account_id = me.id LEFT JOIN accounts a ON a.id = b.blocked_id
      WHERE me.id = ${accountId} ORDER BY a.username`;
    return {
      usernames: rows.flatMap(({ username }) => username ?? []),
      own_seq: rows[0]?.own_seq ?? 0,
    };
  },
  /** A page of those that the account has blocked, ordered by username. */
  blockedAccounts: (db: Sql, { accountId, after = "", limit }: BlockQuery) =>
    db.all<AccountRecord>`
      SELECT ${ACCOUNT} FROM blocks b JOIN accounts a ON a.id = b.blocked_id
      WHERE b.account_id = ${accountId} AND a.username > ${after}
      ORDER BY a.username LIMIT ${limit}`,
  /** The subset of these accounts that have blocked one of the others, in no particular order. */
  blockersAmong: (db: Sql, accountIds: readonly number[], otherIds: readonly number[]) =>
    db.column<number>`
      SELECT DISTINCT account_id FROM blocks
      WHERE account_id = ANY(${accountIds}::bigint[]) AND blocked_id = ANY(${otherIds}::bigint[])`,
  /** Who may add the account to conversations. */
  async addedBy(db: Sql, accountId: number): Promise<AddedBy> {
    const addedBy = await db.firstValue<AddedBy>`
      SELECT added_by FROM accounts WHERE id = ${accountId}`;
    return addedBy ?? "everyone";
  },
  /**
   * The subset of these accounts that do not let the inviter add them: those that have blocked the
   * inviter, and those that only people they know may add. People know the members of the
   * conversations in which they have written.
   */
  refusingInvitation: (db: Sql, accountIds: readonly number[], inviterId: number) =>
    db.column<number>`
      SELECT a.id FROM accounts a WHERE a.id = ANY(${accountIds}::bigint[]) AND (
        EXISTS (SELECT 1 FROM blocks b WHERE b.account_id = a.id AND b.blocked_id = ${inviterId})
        OR a.added_by = 'known' AND ${isStranger(inviterId)})`,
  /** The subset of these people who do not know the inviter. */
  strangersAmong: (db: Sql, accountIds: readonly number[], inviterId: number) =>
    db.column<number>`
      SELECT a.id FROM accounts a
      WHERE a.id = ANY(${accountIds}::bigint[]) AND ${isStranger(inviterId)}`,
  /** Groups that the creator started and in which the member has never written, oldest first. */
  unansweredGroups: (db: Sql, memberId: number, creatorId: number, limit: number) =>
    db.column<string>`
      SELECT c.uuid FROM members m JOIN conversations c ON c.id = m.conversation_id
      WHERE m.account_id = ${memberId} AND NOT m.wrote AND c.kind = 'group'
        AND c.created_by = ${creatorId}
      ORDER BY c.id LIMIT ${limit}`,
  /** The subset of these accounts that left the conversation for good. */
  goneForGood: (db: Sql, conversationId: number, accountIds: readonly number[]) =>
    db.column<number>`
      SELECT account_id AS id FROM final_departures
      WHERE conversation_id = ${conversationId} AND account_id = ANY(${accountIds}::bigint[])`,
};

export const blockWrites = {
  /**
   * Blocks a person. Increments the account's own counter and returns its new value. Returns null, and
   * changes nothing, when the person is blocked already.
   */
  async block(db: Sql, accountId: number, blockedId: number, at: number): Promise<number | null> {
    const row = { account_id: accountId, blocked_id: blockedId, created_at: at };
    const isNew = await db.insertNew("blocks", row);
    return isNew ? incrementOwnCounter(db, accountId) : null;
  },
  /**
   * Ends a block. Increments the account's own counter and returns its new value. Returns null, and
   * changes nothing, when the person is not blocked.
   */
  async unblock(db: Sql, accountId: number, blockedId: number): Promise<number | null> {
    const keys = { account_id: accountId, blocked_id: blockedId };
    const ended = await db.remove("blocks", keys);
    return ended === 0 ? null : incrementOwnCounter(db, accountId);
  },
  setAddedBy: (db: Sql, accountId: number, addedBy: AddedBy) =>
    changeAccount(db, accountId, { added_by: addedBy }),
  /** Remembers that an account left the conversation for good. */
  async leaveForGood(db: Sql, conversationId: number, accountId: number, at: number) {
    db.changes(conversationId);
    const departure = { conversation_id: conversationId, account_id: accountId, left_at: at };
    await db.insertNew("final_departures", departure);
  },
};

export interface BlockQuery {
  accountId: number;
  /** Return only usernames after this one. */
  after?: string | undefined;
  limit: number;
}

/** Whether the account with the alias `a` does not know the inviter. */
const isStranger = (inviterId: number) => sql`NOT EXISTS (SELECT 1 FROM members own
  JOIN members theirs ON theirs.conversation_id = own.conversation_id
  WHERE own.account_id = a.id AND own.wrote AND theirs.account_id = ${inviterId})`;
