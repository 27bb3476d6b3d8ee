import { raw, type Sql } from "./sql.ts";

/** Addresses at which other programs post into a group. */
export const incomingHookReads = {
  incomingHook: (db: Sql, id: string) =>
    db.get<IncomingHookRecord>`SELECT ${COLUMNS} FROM incoming_hooks WHERE id = ${id}`,
  /** The hooks of a conversation, ordered by creation. */
  incomingHooks: (db: Sql, chat: string) =>
    db.all<IncomingHookRecord>`
      SELECT ${COLUMNS} FROM incoming_hooks WHERE chat = ${chat} ORDER BY created_at, id`,
  /** The hooks that a person created, by username, ordered by creation. */
  incomingHooksBy: (db: Sql, creator: string) =>
    db.all<IncomingHookRecord>`
      SELECT ${COLUMNS} FROM incoming_hooks WHERE creator = ${creator} ORDER BY created_at, id`,
};

export const incomingHookWrites = {
  /**
   * From then on the account of the hook counts as a former member: it may have sent messages. The unit
   * owns the conversation then.
   */
  async insertIncomingHook(db: Sql, hook: IncomingHookRecord): Promise<void> {
    await db.insert("incoming_hooks", { ...hook });
    const conversationId = await db.firstValue<number>`
      SELECT id FROM conversations WHERE uuid = ${hook.chat}`;
    if (conversationId === null) return;
    await db.own(conversationId);
    await db.change`
      INSERT INTO former_members (conversation_id, account_id)
      SELECT ${conversationId}, id FROM accounts WHERE username = ${hook.account}
      ON CONFLICT DO NOTHING`;
  },
  deleteIncomingHook: (db: Sql, id: string) => db.remove("incoming_hooks", { id }),
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

const COLUMNS = raw("id, secret_hash, chat, name, creator, account, created_at");
