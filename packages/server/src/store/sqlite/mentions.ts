import { ADD_MENTIONS } from "../mentions.ts";
import type { Connection } from "./connection.ts";
import { compiled } from "./dialect.ts";

export const storedMentions = (mentions: readonly string[]): string | null =>
  mentions.length === 0 ? null : JSON.stringify(mentions);

/** `addMentions` for a method that is not converted. */
export function mentionAdder(db: Connection) {
  const insert = db.change<{ account_id: number }>(compiled(ADD_MENTIONS));
  const update = db.change(
    `UPDATE members SET unread_mentions = unread_mentions + 1
     WHERE conversation_id = ?1 AND account_id = ?2 AND last_read_seq < ?3`,
  );
  return (usernames: readonly string[], conversationId: number, seq: number, senderId: number) => {
    const rows = insert.all(JSON.stringify(usernames), conversationId, seq, senderId);
    for (const { account_id } of rows) update.run(conversationId, account_id, seq);
  };
}
