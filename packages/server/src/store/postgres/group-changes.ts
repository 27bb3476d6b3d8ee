import type { ConversationChange } from "@parley/protocol";
import { accountsIn, type ChangeRow, storedChanges, toChanges } from "../rows.ts";
import { accountsById } from "./accounts.ts";
import { type Methods, NOW, type Unit } from "./unit.ts";

const COLUMNS = "seq, at, actor_id, changes";

export const changeReads: Methods<"conversationChanges"> = {
  conversationChanges: async (unit, { conversationId, after, before, limit }) => {
    const rows = await unit.all<ChangeRow>(
      `SELECT ${COLUMNS} FROM conversation_changes
       WHERE conversation_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq DESC LIMIT $4`,
      conversationId,
      after,
      before,
      limit,
    );
    return shownChanges(unit, rows.toReversed());
  },
};

/** The first rows after a value of the counter, in order. */
export const changesSince = (unit: Unit, conversationId: number, since: number, limit: number) =>
  unit.all<ChangeRow>(
    `SELECT ${COLUMNS} FROM conversation_changes
     WHERE conversation_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
    conversationId,
    since,
    limit,
  );

/** Turns rows into changes as everybody sees them. */
export const shownChanges = async (
  unit: Unit,
  rows: readonly ChangeRow[],
): Promise<ConversationChange[]> => toChanges(rows, await accountsById(unit, accountsIn(rows)));

export const changeWrites: Methods<"changeGroup"> = {
  changeGroup: async (unit, id, given) => {
    await unit.own(id);
    const [row] = await unit.change<{ seq: number }>(
      `WITH counted AS (
         UPDATE counters SET seq = seq + 1, updated_at = $2, changed_at = ${NOW}
         WHERE conversation_id = $1 RETURNING conversation_id, seq)
       INSERT INTO conversation_changes (conversation_id, seq, at, actor_id, changes)
       SELECT conversation_id, seq, $2, $3, $4::jsonb FROM counted RETURNING seq`,
      id,
      given.at,
      given.actor.id,
      storedChanges(given),
    );
    if (!row) throw new Error(`conversation ${id} has no counters`);
    return row.seq;
  },
};
