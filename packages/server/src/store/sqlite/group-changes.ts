import type { Account, ConversationChange } from "@parley/protocol";
import type { GroupChangeReads, GroupChangeWrites } from "../group-changes.ts";
import { byId, PUBLIC_ACCOUNT } from "../shared/accounts.ts";
import {
  accountsIn,
  GROUP_CHANGE,
  GROUP_CHANGES_SINCE,
  type GroupChangeRow,
  LATEST_GROUP_CHANGES,
  toConversationChanges,
  toStoredChanges,
} from "../shared/group-changes.ts";
import type { Connection } from "./connection.ts";

type StoredRow = Omit<GroupChangeRow, "changes"> & { changes: string };

export function groupChangeReads(db: Connection): GroupChangeReads {
  const latest = db.query<StoredRow>(LATEST_GROUP_CHANGES);
  const views = groupChangeViews(db);
  return {
    conversationChanges: ({ conversationId, after, before, limit }) =>
      views(latest.all(conversationId, after, before, limit).toReversed().map(parsed)),
  };
}

/** The first changes after a value of the counter, oldest first. */
export function groupChangesSince(db: Connection) {
  const rows = db.query<StoredRow>(GROUP_CHANGES_SINCE);
  return (conversationId: number, since: number, limit: number): GroupChangeRow[] =>
    rows.all(conversationId, since, limit).map(parsed);
}

const parsed = ({ changes, ...row }: StoredRow): GroupChangeRow => ({
  ...row,
  changes: JSON.parse(changes) as GroupChangeRow["changes"],
});

/** Converts rows to changes as all viewers see them. */
export function groupChangeViews(db: Connection) {
  const named = db.query<Account & { id: number }>(
    `SELECT a.id, ${PUBLIC_ACCOUNT} FROM json_each(?) j JOIN accounts a ON a.id = j.value`,
  );
  return (rows: readonly GroupChangeRow[]): ConversationChange[] => {
    if (rows.length === 0) return [];
    const accounts = named.all(JSON.stringify(accountsIn(rows)));
    return toConversationChanges(rows, byId(accounts));
  };
}

export function groupChangeWrites(db: Connection): GroupChangeWrites {
  const increment = db.change<{ seq: number }>(
    "UPDATE counters SET seq = seq + 1, updated_at = ?2 WHERE conversation_id = ?1 RETURNING seq",
  );
  const insert = db.change(
    `INSERT INTO conversation_changes (conversation_id, ${GROUP_CHANGE}) VALUES (?, ?, ?, ?, ?)`,
  );
  return {
    changeGroup: (conversationId, given) => {
      const { actor, at } = given;
      const seq = increment.get(conversationId, at)?.seq;
      if (seq === undefined) throw new Error(`conversation ${conversationId} has no counters`);
      insert.run(conversationId, seq, at, actor.id, JSON.stringify(toStoredChanges(given)));
      return seq;
    },
  };
}
