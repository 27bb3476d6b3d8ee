import { toStoredMentions } from "../shared/mentions.ts";
import type { Connection } from "./connection.ts";

export const parsedMentions = (stored: string | null): string[] =>
  stored === null ? [] : (JSON.parse(stored) as string[]);

export const storedMentions = (mentions: readonly string[]): string | null => {
  const stored = toStoredMentions(mentions);
  return stored && JSON.stringify(stored);
};

/** Each method also updates the unread mentions of the accounts that are mentioned. */
export function mentionWrites(db: Connection) {
  const insert = db.change<{ account_id: number }>(
    `INSERT INTO mentions (account_id, conversation_id, seq)
     SELECT a.id, ?2, ?3 FROM json_each(?1) j JOIN accounts a ON a.username = j.value
     WHERE a.id <> ?4 AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = a.id
       AND h.conversation_id = ?2 AND h.seq = ?3) ON CONFLICT DO NOTHING RETURNING account_id`,
  );
  const remove = db.change<{ account_id: number }>(
    `DELETE FROM mentions WHERE conversation_id = ?2 AND seq = ?3 AND account_id IN
       (SELECT a.id FROM json_each(?1) j JOIN accounts a ON a.username = j.value)
     RETURNING account_id`,
  );
  const removeOne = db.change<{ account_id: number }>(
    `DELETE FROM mentions WHERE account_id = ? AND conversation_id = ? AND seq = ?
     RETURNING account_id`,
  );
  const update = db.change(
    `UPDATE members SET unread_mentions = unread_mentions + ?4
     WHERE conversation_id = ?1 AND account_id = ?2 AND last_read_seq < ?3`,
  );
  const addUnread = (
    rows: { account_id: number }[],
    conversationId: number,
    seq: number,
    by: 1 | -1,
  ) => {
    for (const { account_id } of rows) update.run(conversationId, account_id, seq, by);
  };
  return {
    /** Senders who mention themselves, and accounts that have hidden the message, are left out. */
    add: (usernames: readonly string[], conversationId: number, seq: number, senderId: number) =>
      addUnread(
        insert.all(JSON.stringify(usernames), conversationId, seq, senderId),
        conversationId,
        seq,
        1,
      ),
    remove: (usernames: readonly string[], conversationId: number, seq: number) =>
      addUnread(
        remove.all(JSON.stringify(usernames), conversationId, seq),
        conversationId,
        seq,
        -1,
      ),
    removeOne: (accountId: number, conversationId: number, seq: number) =>
      addUnread(removeOne.all(accountId, conversationId, seq), conversationId, seq, -1),
  };
}
