import { column, NOW, type Sql } from "./sql.ts";

/** When a program was last connected, or made calls, as an external agent: on any node. */
export const agentPresenceReads = {
  /** The agents among these that were seen within the last `withinMs`. */
  agentsSeen: (db: Sql, accountIds: readonly number[], withinMs: number) =>
    column<number>(
      db,
      `SELECT account_id FROM agent_presence
       WHERE account_id = ANY($1::bigint[]) AND seen_at > ${NOW} - $2::bigint`,
      [db.list(accountIds), withinMs],
    ),
};

export const agentPresenceWrites = {
  /** Records that the agents are seen now. Ignores accounts that do not exist. */
  async noteAgentsSeen(db: Sql, accountIds: readonly number[]): Promise<void> {
    // In the order of ids: two nodes that note the same agents wait for each other in that order.
    await db.change(
      `INSERT INTO agent_presence (account_id, seen_at)
       SELECT id, ${NOW} FROM accounts WHERE id = ANY($1::bigint[]) ORDER BY id
       ON CONFLICT (account_id) DO UPDATE SET seen_at = excluded.seen_at`,
      [db.list(accountIds)],
    );
  },
};
