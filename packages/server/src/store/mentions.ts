import { type Fragment, json, type Sql, sql } from "./sql.ts";

/**
 * Unread mentions. Each function also updates how many the accounts that are mentioned have, as far as
 * they have not read the message.
 */

/** The message that mentions, by its place. */
interface Place {
  readonly conversation_id: number;
  readonly seq: number;
}

interface SentPlace extends Place {
  readonly sender_id: number;
}

const namedBy = (usernames: readonly string[]) =>
  sql`unnest(${usernames}::text[]) AS n (username) JOIN accounts a ON a.username = n.username`;

export const newMentions = (
  usernames: readonly string[],
  { conversation_id, seq, sender_id }: SentPlace,
) => sql`
  INSERT INTO mentions (account_id, conversation_id, seq)
  SELECT a.id, ${conversation_id}, ${seq} FROM ${namedBy(usernames)}
  WHERE a.id <> ${sender_id} AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = a.id
    AND h.conversation_id = ${conversation_id} AND h.seq = ${seq})
  ON CONFLICT DO NOTHING RETURNING account_id`;

/** Senders who mention themselves, and accounts that have hidden the message, are left out. */
export async function addMentions(db: Sql, usernames: readonly string[], place: SentPlace) {
  if (usernames.length === 0) return;
  await countUnread(db, await db.changed`${newMentions(usernames, place)}`, place, 1);
}

export async function removeMentions(db: Sql, usernames: readonly string[], place: Place) {
  if (usernames.length === 0) return;
  await removeOf(db, sql`account_id IN (SELECT a.id FROM ${namedBy(usernames)})`, place);
}

export const removeMentionOf = (db: Sql, accountId: number, place: Place) =>
  removeOf(db, sql`account_id = ${accountId}`, place);

async function removeOf(db: Sql, whose: Fragment, place: Place) {
  const removed = await db.changed<Mentioned>`
    DELETE FROM mentions
    WHERE conversation_id = ${place.conversation_id} AND seq = ${place.seq} AND ${whose}
    RETURNING account_id`;
  await countUnread(db, removed, place, -1);
}

/** How messages store whom they mention: null without mentions. */
export const toStoredMentions = (mentions: readonly string[]) =>
  json(mentions.length === 0 ? null : mentions);

interface Mentioned {
  account_id: number;
}

async function countUnread(db: Sql, mentioned: readonly Mentioned[], place: Place, by: 1 | -1) {
  if (mentioned.length === 0) return;
  const accountIds = mentioned.map(({ account_id }) => account_id);
  await db.change`
    UPDATE members SET unread_mentions = unread_mentions + ${by}
    WHERE conversation_id = ${place.conversation_id} AND account_id = ANY(${accountIds}::bigint[])
      AND last_read_seq < ${place.seq}`;
}
