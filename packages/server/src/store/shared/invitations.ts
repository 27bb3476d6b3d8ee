/** Whether the account with the alias `a` does not know the inviter, parameter 2. */
export const IS_STRANGER = `NOT EXISTS (SELECT 1 FROM members own
    JOIN members theirs ON theirs.conversation_id = own.conversation_id
    WHERE own.account_id = a.id AND own.wrote AND theirs.account_id = $2)`;

export const UNANSWERED_GROUPS = `SELECT c.uuid FROM members m
  JOIN conversations c ON c.id = m.conversation_id
  WHERE m.account_id = $1 AND NOT m.wrote AND c.kind = 'group' AND c.created_by = $2
  ORDER BY c.id LIMIT $3`;

/** Whether the account with the alias `a` does not let the inviter, parameter 2, add it. */
export const REFUSES = `(EXISTS (
    SELECT 1 FROM blocks b WHERE b.account_id = a.id AND b.blocked_id = $2)
  OR a.added_by = 'known' AND ${IS_STRANGER})`;

export const LEAVE_FOR_GOOD = `INSERT INTO final_departures (conversation_id, account_id, left_at)
  VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`;
