import type { ComponentUse } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import { iso } from "../rules/time.ts";
import { type AccountRecord, PUBLIC_ACCOUNT } from "./account-records.ts";
import { incrementCounter } from "./counters.ts";
import type { MessageRecord } from "./message-records.ts";
import { raw, type Sql } from "./sql.ts";

/** Number of component uses that are kept for each message. */
const KEPT_USES = 50;

export const componentWrites = {
  /**
   * Records that somebody used a component of a message: once for each person and component, and only
   * the latest 50 for each message. Increments the counter and returns its new value. While the
   * message streams, the counter stays and null is returned: uses are shown once it is finalized.
   */
  async useComponent(
    db: Sql,
    { id, conversation_id, finalized }: MessageRecord,
    { token, by, at }: NewUse,
  ): Promise<number | null> {
    db.changes(conversation_id);
    const keys = { message_id: id, account_id: by.id, token };
    await db.remove("component_uses", keys);
    await db.insert("component_uses", { ...keys, used_at: at });
    await db.change`
      DELETE FROM component_uses WHERE message_id = ${id} AND id NOT IN (
        SELECT id FROM component_uses WHERE message_id = ${id}
        ORDER BY id DESC LIMIT ${raw(KEPT_USES)})`;
    const version = finalized ? await incrementCounter(db, conversation_id) : null;
    await db.change`
      UPDATE messages SET version = coalesce(${version}, version),
        uses = (SELECT count(*) FROM component_uses WHERE message_id = ${id}) WHERE id = ${id}`;
    return version;
  },
};

/** The uses of components by message, oldest first. */
export async function componentUses(db: Sql, messageIds: readonly number[]) {
  if (messageIds.length === 0) return new Map();
  const rows = await db.all<ComponentUseRow>`
    SELECT u.message_id, u.token, u.used_at, ${PUBLIC_ACCOUNT}
    FROM component_uses u JOIN accounts a ON a.id = u.account_id
    WHERE u.message_id = ANY(${messageIds}::bigint[]) ORDER BY u.id`;
  const byMessage = Map.groupBy(rows, (row) => row.message_id);
  return new Map([...byMessage].map(([id, uses]) => [id, uses.map(toComponentUse)]));
}

export interface NewUse {
  token: string;
  by: AccountRecord;
  at: number;
}

interface ComponentUseRow extends AccountRow {
  message_id: number;
  token: string;
  used_at: number;
}

const toComponentUse = (row: ComponentUseRow): ComponentUse => ({
  token: row.token,
  by: publicAccount(row),
  at: iso(row.used_at),
});
