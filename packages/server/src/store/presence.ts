import type { PresenceSetting } from "@parley/protocol";
import { MOST_PEOPLE } from "../rules/presence.ts";
import { changeAccount } from "./account-records.ts";
import { json, type Sql } from "./sql.ts";

/** Who is told of whom, and when people were last online. */
export const presenceReads = {
  /** Whether others are told when the person is online. */
  async presenceSetting(db: Sql, accountId: number): Promise<PresenceSetting> {
    const presence = await db.firstValue<PresenceSetting>`
      SELECT presence FROM accounts WHERE id = ${accountId}`;
    return presence ?? "visible";
  },
  /** When the person was last online; null if they never were. */
  lastSeen: (db: Sql, accountId: number) =>
    db.firstValue<number>`SELECT seen_at FROM last_seen WHERE account_id = ${accountId}`,
  /**
   * Those of these usernames whose presence the person is told, who are those that are told of the
   * person: people who share a conversation of at most 100 people with them, if both are visible and
   * neither has blocked the other. In no particular order.
   */
  presenceAmong: (db: Sql, username: string, others: readonly string[]) =>
    // `CROSS JOIN` makes SQLite begin with the usernames, and look for a shared conversation among
    // those of each of them: the person may be in far more.
    db.all<LastSeen>`
      SELECT a.username, s.seen_at, o.seen_at AS own_seen_at
      FROM unnest(${others}::text[]) AS j (username)
      CROSS JOIN accounts own CROSS JOIN accounts a
      LEFT JOIN last_seen s ON s.account_id = a.id LEFT JOIN last_seen o ON o.account_id = own.id
      WHERE own.username = ${username} AND a.username = j.username AND a.id <> own.id
        AND own.kind = 'human' AND own.presence = 'visible' AND own.erased_at IS NULL
        AND a.kind = 'human' AND a.presence = 'visible' AND a.erased_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.account_id = own.id AND b.blocked_id = a.id)
        AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.account_id = a.id AND b.blocked_id = own.id)
        AND EXISTS (SELECT 1 FROM members t CROSS JOIN members m CROSS JOIN counters k
          WHERE t.account_id = a.id AND m.conversation_id = t.conversation_id
            AND m.account_id = own.id AND k.conversation_id = t.conversation_id
            AND k.participants - k.agent_participants <= ${MOST_PEOPLE}::bigint)`,
};

export const presenceWrites = {
  setPresence: (db: Sql, accountId: number, presence: PresenceSetting) =>
    changeAccount(db, accountId, { presence }),
  /** Stores when people were last online, unless a later time is stored. Ignores all other accounts. */
  noteLastSeen: (db: Sql, seen: readonly Seen[]) =>
    // Sorted, so that two nodes lock rows in the same order.
    db.change`
      INSERT INTO last_seen (account_id, seen_at)
      SELECT a.id, j.at FROM jsonb_to_recordset(${json(seen)}::jsonb)
        AS j (username text, at bigint)
      JOIN accounts a ON a.username = j.username
      WHERE a.kind = 'human' AND a.erased_at IS NULL ORDER BY a.id
      ON CONFLICT (account_id) DO UPDATE SET seen_at = excluded.seen_at
      WHERE excluded.seen_at > last_seen.seen_at`,
};

export interface LastSeen {
  readonly username: string;
  /** When they were last online; null if they never were. */
  readonly seen_at: number | null;
  /** The same of the person who asks. */
  readonly own_seen_at: number | null;
}

export interface Seen {
  readonly username: string;
  readonly at: number;
}
