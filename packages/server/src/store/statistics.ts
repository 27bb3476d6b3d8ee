import type { Sql } from "./sql.ts";

export const statisticsReads = {
  /** People are active if they have used a session since the given times. */
  async statistics(db: Sql, activeSince: { day: number; month: number }): Promise<Statistics> {
    const [row] = await db.all<Statistics>(
      `SELECT
        (SELECT count(*) FROM accounts WHERE kind = 'human' AND erased_at IS NULL) AS people,
        (SELECT count(*) FROM accounts
          WHERE suspended_at IS NOT NULL AND erased_at IS NULL) AS suspended,
        (SELECT count(DISTINCT account_id) FROM sessions WHERE last_used_at >= $1) AS active_day,
        (SELECT count(DISTINCT account_id) FROM sessions WHERE last_used_at >= $2) AS active_month,
        (SELECT count(*) FROM conversations) AS conversations,
        (SELECT coalesce(max(id), 0) FROM messages) AS messages,
        (SELECT count(*) FROM turns WHERE status IN ('waiting', 'running')) AS open_turns`,
      [activeSince.day, activeSince.month],
    );
    return row as Statistics;
  },
};

export interface Statistics {
  readonly people: number;
  readonly suspended: number;
  readonly active_day: number;
  readonly active_month: number;
  readonly conversations: number;
  /** From the highest id: counting all of them would take long. */
  readonly messages: number;
  /** Turns of agents that wait or run. */
  readonly open_turns: number;
}
