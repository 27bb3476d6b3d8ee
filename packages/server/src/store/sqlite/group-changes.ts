import type { Account, ConversationChange } from "@parley/protocol";
import { accountsIn, type ChangeRow, storedChanges, toChanges } from "../rows.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Connection } from "./connection.ts";

type Reads = Pick<ReadTx, "conversationChanges">;
type Writes = Pick<WriteTx, "changeGroup">;

const COLUMNS = "seq, at, actor_id, changes";

type StoredRow = Omit<ChangeRow, "changes"> & { changes: string };

export function changeReads(db: Connection): Reads {
  const latest = db.query<StoredRow>(
    `SELECT ${COLUMNS} FROM conversation_changes
     WHERE conversation_id = ?1 AND seq > ?2 AND seq < ?3 ORDER BY seq DESC LIMIT ?4`,
  );
  const shown = changeViews(db);
  return {
    conversationChanges: ({ conversationId, after, before, limit }) =>
      shown(latest.all(conversationId, after, before, limit).toReversed().map(parsed)),
  };
}

/** The first rows after a value of the counter, in order. */
export function changesSince(db: Connection) {
  const rows = db.query<StoredRow>(
    `SELECT ${COLUMNS} FROM conversation_changes
     WHERE conversation_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3`,
  );
  return (conversationId: number, since: number, limit: number): ChangeRow[] =>
    rows.all(conversationId, since, limit).map(parsed);
}

const parsed = ({ changes, ...row }: StoredRow): ChangeRow => ({
  ...row,
  changes: JSON.parse(changes) as ChangeRow["changes"],
});

/** Turns rows into changes as everybody sees them. */
export function changeViews(db: Connection) {
  const named = db.query<Account & { id: number }>(
    `SELECT a.id, a.username, a.kind, a.display_name, a.version FROM json_each(?) j
     JOIN accounts a ON a.id = j.value`,
  );
  return (rows: readonly ChangeRow[]): ConversationChange[] => {
    if (rows.length === 0) return [];
    const accounts = named.all(JSON.stringify(accountsIn(rows)));
    return toChanges(rows, new Map(accounts.map(({ id, ...account }) => [id, account])));
  };
}

export function changeWrites(db: Connection): Writes {
  const step = db.change<{ seq: number }>(
    "UPDATE counters SET seq = seq + 1, updated_at = ?2 WHERE conversation_id = ?1 RETURNING seq",
  );
  const insert = db.change(
    `INSERT INTO conversation_changes (conversation_id, ${COLUMNS}) VALUES (?, ?, ?, ?, ?)`,
  );
  return {
    changeGroup: (conversationId, given) => {
      const { actor, at } = given;
      const seq = step.get(conversationId, at)?.seq;
      if (seq === undefined) throw new Error(`conversation ${conversationId} has no counters`);
      insert.run(conversationId, seq, at, actor.id, JSON.stringify(storedChanges(given)));
      return seq;
    },
  };
}
