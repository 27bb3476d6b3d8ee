import type { Encoded, Sql, Value } from "./sql.ts";

/**
 * Unread mentions. Each function also updates how many the accounts that are mentioned have, as far as
 * they have not read the message.
 */

/** The message that mentions, by its place. */
interface Place {
  readonly conversation_id: number;
  readonly seq: number;
}

const NAMED = "unnest($1::text[]) AS n (username) JOIN accounts a ON a.username = n.username";

/** Parameters: the usernames, the place of the message, its sender. */
export const ADD_MENTIONS = `INSERT INTO mentions (account_id, conversation_id, seq)
  SELECT a.id, $2, $3 FROM ${NAMED}
  WHERE a.id <> $4 AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = a.id
    AND h.conversation_id = $2 AND h.seq = $3) ON CONFLICT DO NOTHING RETURNING account_id`;

/** Senders who mention themselves, and accounts that have hidden the message, are left out. */
export async function addMentions(
  db: Sql,
  usernames: readonly string[],
  { conversation_id, seq, sender_id }: Place & { readonly sender_id: number },
): Promise<void> {
  if (usernames.length === 0) return;
  const named = db.list(usernames);
  const added = await db.changed<Mentioned>(ADD_MENTIONS, [named, conversation_id, seq, sender_id]);
  await countUnread(db, added, conversation_id, seq, 1);
}

export async function removeMentions(
  db: Sql,
  usernames: readonly string[],
  place: Place,
): Promise<void> {
  if (usernames.length === 0) return;
  await removeOf(db, `account_id IN (SELECT a.id FROM ${NAMED})`, db.list(usernames), place);
}

export const removeMentionOf = (db: Sql, accountId: number, place: Place) =>
  removeOf(db, "account_id = $1", accountId, place);

async function removeOf(db: Sql, whose: string, value: Value, { conversation_id, seq }: Place) {
  const removed = await db.changed<Mentioned>(
    `DELETE FROM mentions WHERE conversation_id = $2 AND seq = $3 AND ${whose}
     RETURNING account_id`,
    [value, conversation_id, seq],
  );
  await countUnread(db, removed, conversation_id, seq, -1);
}

/** How messages store whom they mention: null without mentions. */
export const toStoredMentions = (db: Sql, mentions: readonly string[]): Encoded | null =>
  db.json(mentions.length === 0 ? null : mentions);

interface Mentioned {
  account_id: number;
}

async function countUnread(
  db: Sql,
  mentioned: readonly Mentioned[],
  conversationId: number,
  seq: number,
  by: 1 | -1,
): Promise<void> {
  if (mentioned.length === 0) return;
  await db.change(
    `UPDATE members SET unread_mentions = unread_mentions + $4
     WHERE conversation_id = $1 AND account_id = ANY($2::bigint[]) AND last_read_seq < $3`,
    [conversationId, db.list(mentioned.map(({ account_id }) => account_id)), seq, by],
  );
}
