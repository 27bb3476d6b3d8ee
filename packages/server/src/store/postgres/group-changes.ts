import type { ConversationChange } from "@parley/protocol";
import type { GroupChangeReads, GroupChangeWrites } from "../group-changes.ts";
import {
  accountsIn,
  GROUP_CHANGE,
  GROUP_CHANGES_SINCE,
  type GroupChangeRow,
  LATEST_GROUP_CHANGES,
  toConversationChanges,
  toStoredChanges,
} from "../shared/group-changes.ts";
import { accountsById } from "./accounts.ts";
import type { Methods, Unit } from "./unit.ts";

export const groupChangeReads: Methods<keyof GroupChangeReads> = {
  conversationChanges: async (unit, { conversationId, after, before, limit }) => {
    const rows = await unit.all<GroupChangeRow>(
      LATEST_GROUP_CHANGES,
      conversationId,
      after,
      before,
      limit,
    );
    return groupChangeViews(unit, rows.toReversed());
  },
};

/** The first changes after a value of the counter, oldest first. */
export const groupChangesSince = (
  unit: Unit,
  conversationId: number,
  since: number,
  limit: number,
) => unit.all<GroupChangeRow>(GROUP_CHANGES_SINCE, conversationId, since, limit);

/** Converts rows to changes as all viewers see them. */
export const groupChangeViews = async (
  unit: Unit,
  rows: readonly GroupChangeRow[],
): Promise<ConversationChange[]> =>
  toConversationChanges(rows, await accountsById(unit, accountsIn(rows)));

export const groupChangeWrites: Methods<keyof GroupChangeWrites> = {
  changeGroup: async (unit, id, given) => {
    await unit.own(id);
    const [row] = await unit.write<{ seq: number }>(
      `WITH counted AS (
         UPDATE counters SET seq = seq + 1, updated_at = $2
         WHERE conversation_id = $1 RETURNING conversation_id, seq)
       INSERT INTO conversation_changes (conversation_id, ${GROUP_CHANGE})
       SELECT conversation_id, seq, $2, $3, $4::jsonb FROM counted RETURNING seq`,
      id,
      given.at,
      given.actor.id,
      toStoredChanges(given),
    );
    if (!row) throw new Error(`conversation ${id} has no counters`);
    return row.seq;
  },
};
