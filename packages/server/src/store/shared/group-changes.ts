import type { Account, ConversationChange } from "@parley/protocol";
import { iso } from "../../rules/time.ts";
import type { NewChanges } from "../group-changes.ts";
import { SHOWN_PARTICIPANTS } from "./conversations.ts";

/** Columns of a `GroupChangeRow`. */
export const GROUP_CHANGE = "seq, at, actor_id, changes";

/** Newest first. */
export const LATEST_GROUP_CHANGES = `SELECT ${GROUP_CHANGE} FROM conversation_changes
  WHERE conversation_id = $1 AND seq > $2 AND seq < $3 ORDER BY seq DESC LIMIT $4`;

/** Oldest first. */
export const GROUP_CHANGES_SINCE = `SELECT ${GROUP_CHANGE} FROM conversation_changes
  WHERE conversation_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`;

/** The changes that one call made. */
export interface GroupChangeRow {
  seq: number;
  at: number;
  actor_id: number;
  changes: StoredChange[];
}

export interface StoredChange {
  kind: ConversationChange["kind"];
  subjects: number[];
  subject_count: number;
  title: string | null;
  always_on: boolean | null;
}

export const toStoredChanges = ({ changes }: NewChanges): StoredChange[] =>
  changes.map(({ kind, subjects = [], title = null, always_on = null }) => ({
    kind,
    subjects: subjects.slice(0, SHOWN_PARTICIPANTS).map(({ id }) => id),
    subject_count: subjects.length,
    title,
    always_on,
  }));

/** The ids of the accounts that changes mention, each once. */
export const accountsIn = (rows: readonly GroupChangeRow[]): number[] => [
  ...new Set(
    rows.flatMap(({ actor_id, changes }) => [
      actor_id,
      ...changes.flatMap(({ subjects }) => subjects),
    ]),
  ),
];

/** `accounts` has every account of `accountsIn`. */
export function toConversationChanges(
  rows: readonly GroupChangeRow[],
  accounts: ReadonlyMap<number, Account>,
): ConversationChange[] {
  const account = (id: number) => {
    const found = accounts.get(id);
    if (!found) throw new Error(`account ${id} is missing`);
    return found;
  };
  return rows.flatMap(({ seq, at, actor_id, changes }) =>
    changes.map(({ subjects, ...change }) => ({
      seq,
      at: iso(at),
      actor: account(actor_id),
      ...change,
      subjects: subjects.map(account),
    })),
  );
}
