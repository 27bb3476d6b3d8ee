import type { AccountRecord } from "../accounts.ts";
import type { BlockReads, BlockWrites } from "../blocks.ts";
import { BLOCKED_ACCOUNTS, INSERT_BLOCK } from "../shared/blocks.ts";
import type { Connection } from "./connection.ts";
import { incrementOwnCounter, ownCounter } from "./own-counter.ts";

export function blockReads(db: Connection): BlockReads {
  const usernames = db.query<{ username: string }>(
    `SELECT a.username FROM blocks b JOIN accounts a ON a.id = b.blocked_id
     WHERE b.account_id = ? ORDER BY a.username`,
  );
  const accounts = db.query<AccountRecord>(BLOCKED_ACCOUNTS);
  const blockers = db.query<{ account_id: number }>(
    `SELECT DISTINCT b.account_id FROM json_each(?1) j JOIN json_each(?2) o
     JOIN blocks b ON b.account_id = j.value AND b.blocked_id = o.value`,
  );
  const ownSeq = ownCounter(db);
  return {
    blockList: (accountId) => ({
      usernames: usernames.all(accountId).map(({ username }) => username),
      own_seq: ownSeq(accountId),
    }),
    blockedAccounts: ({ accountId, after = "", limit }) => accounts.all(accountId, after, limit),
    blockersAmong: (accountIds, otherIds) =>
      blockers
        .all(JSON.stringify(accountIds), JSON.stringify(otherIds))
        .map(({ account_id }) => account_id),
  };
}

export function blockWrites(db: Connection): BlockWrites {
  const insert = db.change(INSERT_BLOCK);
  const remove = db.change("DELETE FROM blocks WHERE account_id = ? AND blocked_id = ?");
  const increment = incrementOwnCounter(db);
  return {
    block: (accountId, blockedId, at) =>
      insert.run(accountId, blockedId, at).changes === 0 ? null : increment(accountId),
    unblock: (accountId, blockedId) =>
      remove.run(accountId, blockedId).changes === 0 ? null : increment(accountId),
  };
}
