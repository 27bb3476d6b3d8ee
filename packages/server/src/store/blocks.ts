import type { BlockList } from "@parley/protocol";
import { ACCOUNT } from "./account-records.ts";
import type { AccountRecord } from "./accounts.ts";
import { incrementOwnCounter } from "./counters.ts";
import { column, insertNew, type Sql } from "./sql.ts";

/** Which people an account has blocked. */
export const blockReads = {
  /** All that the account has blocked, ordered by username, with its own counter at that moment. */
  async blockList(db: Sql, accountId: number): Promise<BlockList> {
    // One statement, so that the list belongs to the counter.
    const rows = await db.all<{ own_seq: number; username: string | null }>(
      `SELECT me.own_seq, a.username FROM accounts me
       LEFT JOIN blocks b ON b.account_id = me.id LEFT JOIN accounts a ON a.id = b.blocked_id
       WHERE me.id = $1 ORDER BY a.username`,
      [accountId],
    );
    return {
      usernames: rows.flatMap(({ username }) => username ?? []),
      own_seq: rows[0]?.own_seq ?? 0,
    };
  },
  /** A page of those that the account has blocked, ordered by username. */
  blockedAccounts: (db: Sql, { accountId, after = "", limit }: BlockQuery) =>
    db.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM blocks b JOIN accounts a ON a.id = b.blocked_id
       WHERE b.account_id = $1 AND a.username > $2 ORDER BY a.username LIMIT $3`,
      [accountId, after, limit],
    ),
  /** The subset of these accounts that have blocked one of the others, in no particular order. */
  blockersAmong: (db: Sql, accountIds: readonly number[], otherIds: readonly number[]) =>
    column<number>(
      db,
      `SELECT DISTINCT account_id FROM blocks
       WHERE account_id = ANY($1::bigint[]) AND blocked_id = ANY($2::bigint[])`,
      [db.list(accountIds), db.list(otherIds)],
    ),
};

export const blockWrites = {
  /**
   * Blocks a person. Increments the account's own counter and returns its new value. Returns null, and
   * changes nothing, when the person is blocked already.
   */
  async block(db: Sql, accountId: number, blockedId: number, at: number): Promise<number | null> {
    const row = { account_id: accountId, blocked_id: blockedId, created_at: at };
    const isNew = await insertNew(db, "blocks", row);
    return isNew ? incrementOwnCounter(db, accountId) : null;
  },
  /**
   * Ends a block. Increments the account's own counter and returns its new value. Returns null, and
   * changes nothing, when the person is not blocked.
   */
  async unblock(db: Sql, accountId: number, blockedId: number): Promise<number | null> {
    const ended = await db.change("DELETE FROM blocks WHERE account_id = $1 AND blocked_id = $2", [
      accountId,
      blockedId,
    ]);
    return ended === 0 ? null : incrementOwnCounter(db, accountId);
  },
};

export interface BlockQuery {
  accountId: number;
  /** Return only usernames after this one. */
  after?: string | undefined;
  limit: number;
}
