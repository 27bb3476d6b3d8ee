import { list, type Unit } from "./unit.ts";

const NAMED = `SELECT a.id FROM jsonb_array_elements_text($1::jsonb) AS n(username)
  JOIN accounts a ON a.username = n.username`;

/** Each method also updates the unread mentions of the accounts that are mentioned. */
export const mentionWrites = {
  /** Senders who mention themselves, and accounts that have hidden the message, are left out. */
  add: async (
    unit: Unit,
    usernames: readonly string[],
    conversationId: number,
    seq: number,
    senderId: number,
  ) => {
    const rows = await unit.write<{ account_id: number }>(
      `INSERT INTO mentions (account_id, conversation_id, seq)
       SELECT a.id, $2, $3 FROM (${NAMED}) a
       WHERE a.id <> $4 AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = a.id
         AND h.conversation_id = $2 AND h.seq = $3) ON CONFLICT DO NOTHING RETURNING account_id`,
      usernames,
      conversationId,
      seq,
      senderId,
    );
    await addUnread(unit, rows, conversationId, seq, 1);
  },
  remove: async (unit: Unit, usernames: readonly string[], conversationId: number, seq: number) => {
    const rows = await unit.write<{ account_id: number }>(
      `DELETE FROM mentions WHERE conversation_id = $2 AND seq = $3 AND account_id IN (${NAMED})
       RETURNING account_id`,
      usernames,
      conversationId,
      seq,
    );
    await addUnread(unit, rows, conversationId, seq, -1);
  },
  removeOne: async (unit: Unit, accountId: number, conversationId: number, seq: number) => {
    const rows = await unit.write<{ account_id: number }>(
      `DELETE FROM mentions WHERE account_id = $1 AND conversation_id = $2 AND seq = $3
       RETURNING account_id`,
      accountId,
      conversationId,
      seq,
    );
    await addUnread(unit, rows, conversationId, seq, -1);
  },
};

async function addUnread(
  unit: Unit,
  rows: readonly { account_id: number }[],
  conversationId: number,
  seq: number,
  by: 1 | -1,
): Promise<void> {
  if (rows.length === 0) return;
  await unit.write(
    `UPDATE members SET unread_mentions = unread_mentions + $4
     WHERE conversation_id = $1 AND account_id = ANY($2::bigint[]) AND last_read_seq < $3`,
    conversationId,
    list(rows.map((row) => row.account_id)),
    seq,
    by,
  );
}
