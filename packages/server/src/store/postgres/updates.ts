import { MESSAGE, type MessageRow, NOT_HIDDEN } from "../shared/messages.ts";
import {
  CHANGED_MESSAGES,
  CREATED_MESSAGES,
  completePage,
  LAST_SEQ,
  updatesPage,
} from "../shared/updates.ts";
import type { UpdateReads, Updates, UpdatesQuery } from "../updates.ts";
import { groupChangesSince, groupChangeViews } from "./group-changes.ts";
import { viewMessages } from "./message-views.ts";
import type { Methods, Unit } from "./unit.ts";

/** As the number of rows of a statement: all of them. */
const NO_LIMIT = null;

const STREAMING = `SELECT ${MESSAGE} FROM turns t JOIN messages m ON m.id = t.message_id
    JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id
  WHERE t.conversation_id = $1 AND t.status = 'running' AND m.seq <= $3 AND m.version <= $3
    AND m.deleted_at IS NULL AND ${NOT_HIDDEN}`;
const HIDDEN = `SELECT m.uuid FROM hidden h JOIN messages m
    ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
  WHERE h.account_id = $2 AND h.conversation_id = $1 AND h.at_seq >= $3 AND h.at_seq <= $4`;

export const updateReads: Methods<keyof UpdateReads> = { updates };

async function updates(unit: Unit, query: UpdatesQuery): Promise<Updates> {
  const { conversationId: id, viewerId, since, limit } = query;
  const page = updatesPage(await findUpdates(unit, query), limit);
  const further = page.has_more
    ? await unit.all<MessageRow>(CHANGED_MESSAGES, id, viewerId, page.seq - 1, NO_LIMIT, page.seq)
    : await unit.all<MessageRow>(STREAMING, id, viewerId, since);
  const { live, deleted, changes, seq, has_more } = completePage(page, further);
  const upTo = has_more ? seq : LAST_SEQ;
  const hidden = await unit.all<{ uuid: string }>(HIDDEN, id, viewerId, since, upTo);
  return {
    messages: await viewMessages(unit, live, viewerId),
    deleted_ids: [...deleted, ...hidden.map(({ uuid }) => uuid)],
    changes: await groupChangeViews(unit, changes),
    seq,
    has_more,
  };
}

async function findUpdates(
  unit: Unit,
  { conversationId: id, viewerId, since, limit }: UpdatesQuery,
) {
  const most = limit + 1;
  const [counter, created, changed, changes] = await Promise.all([
    unit.get<{ seq: number }>("SELECT seq FROM counters WHERE conversation_id = $1", id),
    unit.all<MessageRow>(CREATED_MESSAGES, id, viewerId, since, most),
    unit.all<MessageRow>(CHANGED_MESSAGES, id, viewerId, since, most, LAST_SEQ),
    groupChangesSince(unit, id, since, most),
  ]);
  return { created, changed, changes, counter: counter?.seq ?? 0 };
}
