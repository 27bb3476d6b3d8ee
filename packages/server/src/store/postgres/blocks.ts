import type { AccountRecord } from "../accounts.ts";
import type { BlockReads, BlockWrites } from "../blocks.ts";
import { BLOCKED_ACCOUNTS, INSERT_BLOCK } from "../shared/blocks.ts";
import { incrementOwnCounter } from "./own-counter.ts";
import { list, type Methods } from "./unit.ts";

export const blockReads: Methods<keyof BlockReads> = {
  blockList: async (unit, accountId) => {
    // One statement, so that the list belongs to the counter.
    const row = await unit.get<{ own_seq: number; usernames: string[] }>(
      `SELECT me.own_seq, (SELECT coalesce(jsonb_agg(a.username ORDER BY a.username), '[]')
         FROM blocks b JOIN accounts a ON a.id = b.blocked_id WHERE b.account_id = me.id) AS usernames
       FROM accounts me WHERE me.id = $1`,
      accountId,
    );
    return row ?? { usernames: [], own_seq: 0 };
  },
  blockedAccounts: (unit, { accountId, after = "", limit }) =>
    unit.all<AccountRecord>(BLOCKED_ACCOUNTS, accountId, after, limit),
  blockersAmong: async (unit, accountIds, otherIds) => {
    const rows = await unit.all<{ account_id: number }>(
      `SELECT DISTINCT account_id FROM blocks
       WHERE account_id = ANY($1::bigint[]) AND blocked_id = ANY($2::bigint[])`,
      list(accountIds),
      list(otherIds),
    );
    return rows.map(({ account_id }) => account_id);
  },
};

export const blockWrites: Methods<keyof BlockWrites> = {
  block: async (unit, accountId, blockedId, at) => {
    const { count } = await unit.write(INSERT_BLOCK, accountId, blockedId, at);
    return count === 0 ? null : incrementOwnCounter(unit, accountId);
  },
  unblock: async (unit, accountId, blockedId) => {
    const { count } = await unit.write(
      "DELETE FROM blocks WHERE account_id = $1 AND blocked_id = $2",
      accountId,
      blockedId,
    );
    return count === 0 ? null : incrementOwnCounter(unit, accountId);
  },
};
