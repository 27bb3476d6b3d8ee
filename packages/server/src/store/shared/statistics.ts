/** Selects a row of `Statistics`. The parameters are the two times. */
export const STATISTICS = `SELECT
  (SELECT count(*) FROM accounts WHERE kind = 'human' AND erased_at IS NULL) AS people,
  (SELECT count(*) FROM accounts
    WHERE suspended_at IS NOT NULL AND erased_at IS NULL) AS suspended,
  (SELECT count(DISTINCT account_id) FROM sessions WHERE last_used_at >= $1) AS active_day,
  (SELECT count(DISTINCT account_id) FROM sessions WHERE last_used_at >= $2) AS active_month,
  (SELECT count(*) FROM conversations) AS conversations,
  (SELECT coalesce(max(id), 0) FROM messages) AS messages,
  (SELECT count(*) FROM turns WHERE status IN ('waiting', 'running')) AS open_turns`;

/** What `statistics` returns if the query has no row, which cannot be. */
export const NO_STATISTICS = {
  people: 0,
  suspended: 0,
  active_day: 0,
  active_month: 0,
  conversations: 0,
  messages: 0,
  open_turns: 0,
};
