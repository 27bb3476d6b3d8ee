import type { AddedBy } from "@parley/protocol";
import { column, firstValue, insertNew, type Sql, update } from "./sql.ts";

/** Who may add whom to conversations. */
export const invitationReads = {
  /** Who may add the account to conversations. */
  async addedBy(db: Sql, accountId: number): Promise<AddedBy> {
    return (
      (await firstValue<AddedBy>(db, "SELECT added_by FROM accounts WHERE id = $1", [accountId])) ??
      "everyone"
    );
  },
  /**
   * The subset of these accounts that do not let the inviter add them: those that have blocked the
   * inviter, and those that only people they know may add. People know the members of the
   * conversations in which they have written.
   */
  refusingInvitation: (db: Sql, accountIds: readonly number[], inviterId: number) =>
    column<number>(
      db,
      `SELECT a.id FROM accounts a WHERE a.id = ANY($1::bigint[])
       AND (EXISTS (SELECT 1 FROM blocks b WHERE b.account_id = a.id AND b.blocked_id = $2)
         OR a.added_by = 'known' AND ${IS_STRANGER})`,
      [db.list(accountIds), inviterId],
    ),
  /** The subset of these people who do not know the inviter. */
  strangersAmong: (db: Sql, accountIds: readonly number[], inviterId: number) =>
    column<number>(
      db,
      `SELECT a.id FROM accounts a WHERE a.id = ANY($1::bigint[]) AND ${IS_STRANGER}`,
      [db.list(accountIds), inviterId],
    ),
  /** Groups that the creator started and in which the member has never written, oldest first. */
  unansweredGroups: (db: Sql, memberId: number, creatorId: number, limit: number) =>
    column<string>(
      db,
      `SELECT c.uuid FROM members m JOIN conversations c ON c.id = m.conversation_id
       WHERE m.account_id = $1 AND NOT m.wrote AND c.kind = 'group' AND c.created_by = $2
       ORDER BY c.id LIMIT $3`,
      [memberId, creatorId, limit],
    ),
  /** The subset of these accounts that left the conversation for good. */
  goneForGood: (db: Sql, conversationId: number, accountIds: readonly number[]) =>
    column<number>(
      db,
      `SELECT account_id AS id FROM final_departures
       WHERE conversation_id = $1 AND account_id = ANY($2::bigint[])`,
      [conversationId, db.list(accountIds)],
    ),
};

export const invitationWrites = {
  async setAddedBy(db: Sql, accountId: number, addedBy: AddedBy): Promise<void> {
    await db.ownRow("accounts", accountId);
    await update(db, "accounts", { id: accountId }, { added_by: addedBy });
  },
  /** Remembers that an account left the conversation for good. */
  async leaveForGood(
    db: Sql,
    conversationId: number,
    accountId: number,
    at: number,
  ): Promise<void> {
    db.changes(conversationId);
    const departure = { conversation_id: conversationId, account_id: accountId, left_at: at };
    await insertNew(db, "final_departures", departure);
  },
};

/** Whether the account with the alias `a` does not know the inviter, parameter 2. */
const IS_STRANGER = `NOT EXISTS (SELECT 1 FROM members own
  JOIN members theirs ON theirs.conversation_id = own.conversation_id
  WHERE own.account_id = a.id AND own.wrote AND theirs.account_id = $2)`;
