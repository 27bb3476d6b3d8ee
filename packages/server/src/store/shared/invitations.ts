/** Whether the account with the alias `a` does not let the inviter, parameter 2, add it. */
export const REFUSES = `(EXISTS (
    SELECT 1 FROM blocks b WHERE b.account_id = a.id AND b.blocked_id = $2)
  OR a.added_by = 'known' AND NOT EXISTS (SELECT 1 FROM members own
    JOIN members theirs ON theirs.conversation_id = own.conversation_id
    WHERE own.account_id = a.id AND own.wrote AND theirs.account_id = $2))`;

export const LEAVE_FOR_GOOD = `INSERT INTO final_departures (conversation_id, account_id, left_at)
  VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`;
