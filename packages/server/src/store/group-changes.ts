import type { Account, ConversationChange } from "@parley/protocol";
import { iso } from "../rules/time.ts";
import { accountsById } from "./account-records.ts";
import type { AccountRecord } from "./accounts.ts";
import { clearedIn } from "./message-views.ts";
import type { NonEmpty } from "./non-empty.ts";
import { decoded, json, raw, type Sql } from "./sql.ts";

/** Number of members that lists, events and changes of a group show. */
export const SHOWN_PARTICIPANTS = 50;

/** What happened to a group itself: its members, admin, title, and the modes of its agents. */
export const groupChangeReads = {
  /** Changes between two values of the group's counter that the viewer has not cleared, oldest first. */
  async conversationChanges(db: Sql, query: ChangesQuery): Promise<ConversationChange[]> {
    const { conversationId, viewerId } = query;
    const rows = await db.all<GroupChangeRow>`
      SELECT ${GROUP_CHANGE} FROM conversation_changes
      WHERE conversation_id = ${conversationId} AND seq > ${query.after}
        AND seq < ${query.before} AND seq > ${clearedIn(conversationId, viewerId)} ORDER BY seq DESC LIMIT ${query.limit}`;
    return groupChangeViews(db, rows.toReversed());
  },
};

export const groupChangeWrites = {
  /**
   * Stores what one call changed, increments the group's counter and returns its new value. All
   * changes of the call share that value. The group itself is changed by other methods.
   */
  async changeGroup(db: Sql, conversationId: number, { actor, changes, at }: NewChanges) {
    db.changes(conversationId);
    const [row] = await db.changed<{ seq: number }>`
      UPDATE counters SET seq = seq + 1, updated_at = ${at}
      WHERE conversation_id = ${conversationId} RETURNING seq`;
    if (!row) throw new Error(`conversation ${conversationId} has no counters`);
    const { seq } = row;
    const stored = { at, actor_id: actor.id, changes: json(changes.map(toStoredChange)) };
    await db.insert("conversation_changes", { conversation_id: conversationId, seq, ...stored });
    return seq;
  },
};

/** The first changes after a value of the counter that the viewer has not cleared, oldest first. */
export const groupChangesSince = (
  db: Sql,
  {
    conversationId,
    viewerId,
    since,
  }: Pick<ChangesQuery, "conversationId" | "viewerId"> & { since: number },
  most: number,
) =>
  db.all<GroupChangeRow>`
    SELECT ${GROUP_CHANGE} FROM conversation_changes
    WHERE conversation_id = ${conversationId} AND seq > ${since}
      AND seq > ${clearedIn(conversationId, viewerId)} ORDER BY seq LIMIT ${most}`;

/** Converts rows to changes as all viewers see them. */
export async function groupChangeViews(
  db: Sql,
  rows: readonly GroupChangeRow[],
): Promise<ConversationChange[]> {
  const calls = rows.map((row) => ({ ...row, changes: decoded(row.changes) }));
  const named = calls.flatMap(({ actor_id, changes }) => [
    actor_id,
    ...changes.flatMap(({ subjects }) => subjects),
  ]);
  const accounts = await accountsById(db, [...new Set(named)]);
  const account = (id: number): Account => {
    const found = accounts.get(id);
    if (!found) throw new Error(`account ${id} is missing`);
    return found;
  };
  return calls.flatMap(({ seq, at, actor_id, changes }) =>
    changes.map(({ subjects, ...change }) => ({
      seq,
      at: iso(at),
      actor: account(actor_id),
      ...change,
      subjects: subjects.map(account),
    })),
  );
}

export interface ChangesQuery {
  conversationId: number;
  viewerId: number;
  /** Exclusive. */
  after: number;
  /** Exclusive. */
  before: number;
  /** Number of calls whose changes are returned: the latest ones. */
  limit: number;
}

/** What one call changed of a group. */
export interface NewChanges {
  actor: AccountRecord;
  changes: NonEmpty<NewChange>;
  at: number;
}

export interface NewChange {
  kind: ConversationChange["kind"];
  subjects?: readonly AccountRecord[];
  title?: string;
  always_on?: boolean;
}

/** Columns of a `GroupChangeRow`. */
const GROUP_CHANGE = raw("seq, at, actor_id, changes");

/** The changes that one call made. */
export interface GroupChangeRow {
  seq: number;
  at: number;
  actor_id: number;
  changes: string | StoredChange[];
}

interface StoredChange {
  kind: ConversationChange["kind"];
  subjects: number[];
  subject_count: number;
  title: string | null;
  always_on: boolean | null;
}

const toStoredChange = (change: NewChange): StoredChange => {
  const { kind, subjects = [], title = null, always_on = null } = change;
  const shown = subjects.slice(0, SHOWN_PARTICIPANTS).map(({ id }) => id);
  return { kind, subjects: shown, subject_count: subjects.length, title, always_on };
};
