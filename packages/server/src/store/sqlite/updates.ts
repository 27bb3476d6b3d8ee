import { MESSAGE, NOT_HIDDEN } from "../shared/messages.ts";
import {
  CHANGED_MESSAGES,
  CREATED_MESSAGES,
  completePage,
  LAST_SEQ,
  updatesPage,
} from "../shared/updates.ts";
import type { UpdateReads } from "../updates.ts";
import type { Connection } from "./connection.ts";
import { groupChangesSince, groupChangeViews } from "./group-changes.ts";
import { type StoredMessageRow, viewMessages } from "./message-views.ts";

/** As the number of rows of a statement: all of them. */
const NO_LIMIT = -1;

/**
 * The index `messages_live` has messages that never changed in the order of their latest change, the
 * index `messages_changed` all others.
 */
export function updateReads(db: Connection): UpdateReads {
  const created = db.query<StoredMessageRow>(CREATED_MESSAGES);
  const changed = db.query<StoredMessageRow>(CHANGED_MESSAGES);
  const hidden = db.query<{ uuid: string }>(
    `SELECT m.uuid FROM hidden h CROSS JOIN messages m
       ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
     WHERE h.account_id = ?2 AND h.conversation_id = ?1 AND h.at_seq >= ?3 AND h.at_seq <= ?4`,
  );
  // With the condition of the index. Waiting turns have no message.
  const streaming = db.query<StoredMessageRow>(
    `SELECT ${MESSAGE} FROM turns t JOIN messages m ON m.id = t.message_id
       JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id
     WHERE t.conversation_id = $1 AND t.status IN ('waiting', 'running') AND m.seq <= $3
       AND m.version <= $3 AND m.deleted_at IS NULL AND ${NOT_HIDDEN}`,
  );
  const counter = db.query<{ seq: number }>("SELECT seq FROM counters WHERE conversation_id = ?");
  const groupChanges = groupChangesSince(db);
  const viewChanges = groupChangeViews(db);
  const view = viewMessages(db);

  return {
    updates: ({ conversationId: id, viewerId, since, limit }) => {
      const most = limit + 1;
      const found = {
        created: created.all(id, viewerId, since, most),
        changed: changed.all(id, viewerId, since, most, LAST_SEQ),
        changes: groupChanges(id, since, most),
        counter: counter.get(id)?.seq ?? 0,
      };
      const page = updatesPage(found, limit);
      const further = page.has_more
        ? changed.all(id, viewerId, page.seq - 1, NO_LIMIT, page.seq)
        : streaming.all(id, viewerId, since);
      const { live, deleted, changes, seq, has_more } = completePage(page, further);
      const hiddenIds = hidden.all(id, viewerId, since, has_more ? seq : LAST_SEQ);
      return {
        messages: view(live, viewerId),
        deleted_ids: [...deleted, ...hiddenIds.map(({ uuid }) => uuid)],
        changes: viewChanges(changes),
        seq,
        has_more,
      };
    },
  };
}
