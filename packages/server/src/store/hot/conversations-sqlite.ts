import {
  blockOf,
  CONVERSATION,
  type ConversationRecord,
  type HotConversationReads,
} from "../conversations.ts";
import type { Connection } from "../sqlite/connection.ts";

export function hotConversationReads(db: Connection): HotConversationReads {
  const record = db.query<Omit<ConversationRecord, "joined"> & { joined: number }>(
    `SELECT ${CONVERSATION},
       EXISTS (SELECT 1 FROM members m WHERE m.conversation_id = c.id AND m.account_id = ?2)
         AS joined,
       ${blockOf("?2")}
     FROM conversations c JOIN counters k ON k.conversation_id = c.id WHERE c.uuid = ?1`,
  );
  return {
    conversation: (uuid, viewerId) => {
      const row = record.get(uuid, viewerId);
      if (row) db.own(row.id);
      return row && { ...row, joined: row.joined === 1 };
    },
  };
}
