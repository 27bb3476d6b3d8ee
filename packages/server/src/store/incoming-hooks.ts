import { firstValue, insert, remove, type Sql } from "./sql.ts";

/** Addresses at which other programs post into a group. */
export const incomingHookReads = {
  incomingHook: (db: Sql, id: string) =>
    db.get<IncomingHookRecord>(`SELECT ${COLUMNS} FROM incoming_hooks WHERE id = $1`, [id]),
  /** The hooks of a conversation, ordered by creation. */
  incomingHooks: (db: Sql, chat: string) =>
    db.all<IncomingHookRecord>(
      `SELECT ${COLUMNS} FROM incoming_hooks WHERE chat = $1 ORDER BY created_at, id`,
      [chat],
    ),
  /** The hooks that a person created, by username, ordered by creation. */
  incomingHooksBy: (db: Sql, creator: string) =>
    db.all<IncomingHookRecord>(
      `SELECT ${COLUMNS} FROM incoming_hooks WHERE creator = $1 ORDER BY created_at, id`,
      [creator],
    ),
};

export const incomingHookWrites = {
  /**
   * From then on the account of the hook counts as a former member: it may have sent messages. The unit
   * owns the conversation then.
   */
  async insertIncomingHook(db: Sql, hook: IncomingHookRecord): Promise<void> {
    await insert(db, "incoming_hooks", { ...hook });
    const chat = "SELECT id FROM conversations WHERE uuid = $1";
    const conversationId = await firstValue<number>(db, chat, [hook.chat]);
    if (conversationId === null) return;
    await db.own(conversationId);
    await db.change(
      `INSERT INTO former_members (conversation_id, account_id)
       SELECT $1, id FROM accounts WHERE username = $2 ON CONFLICT DO NOTHING`,
      [conversationId, hook.account],
    );
  },
  deleteIncomingHook: (db: Sql, id: string) => remove(db, "incoming_hooks", { id }),
};

export interface IncomingHookRecord {
  readonly id: string;
  readonly secret_hash: string;
  /** The UUID of the group. */
  readonly chat: string;
  readonly name: string;
  /** The username of the person who created it. */
  readonly creator: string;
  /** The username of the account that it posts as. */
  readonly account: string;
  readonly created_at: number;
}

const COLUMNS = "id, secret_hash, chat, name, creator, account, created_at";
