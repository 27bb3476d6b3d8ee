import { ACCOUNTS, type AccountRecord, accountAs } from "./account-records.ts";
import { deleteUnusedFilesOf } from "./files.ts";
import { allAs, insert, reader, remove, type Sql } from "./sql.ts";

/**
 * The erasure of accounts. `eraseAccount` does what must happen at once. What takes long, such as
 * deleting messages, follows in steps; the erasure is open until they are finished, so that a later
 * process continues after a crash.
 */
export const erasureReads = {
  /** Erasures whose steps are not finished, oldest first. */
  openErasures: (db: Sql) =>
    allAs(
      db,
      reader<ErasureRecord>({ flags: ["messages"] }),
      `SELECT ${accountAs("account")}, e.messages FROM erasures e
       JOIN accounts a ON a.id = e.account_id ORDER BY e.created_at, e.account_id`,
    ),
  /** The accounts that a person owns, erased ones included: agents, and those of incoming hooks. */
  ownedAccounts: (db: Sql, ownerId: number) =>
    db.all<AccountRecord>(`${ACCOUNTS} WHERE a.owner_id = $1 ORDER BY a.id`, [ownerId]),
  /**
   * Tool calls of which something is stored that only the owner of their agents saw, or whose tools have
   * asked the owner something.
   */
  toolCallsToErase: (db: Sql, ownerId: number) =>
    db.all<ToolCallPlace>(
      `SELECT uuid, conversation_id FROM tool_calls
       WHERE owner_id = $1 AND coalesce(result, error, note, provider_fields) IS NOT NULL
       UNION SELECT call_uuid, conversation_id FROM elicitations WHERE owner_id = $1`,
      [ownerId],
    ),
};

export const erasureWrites = {
  /**
   * Marks the account of a person or an agent, and those that it owns, as erased, and begins an open
   * erasure. Deletes the password, the external id, metadata, identities, names to be found by, provider
   * keys, settings of agents, incoming hooks, hidden messages, uploads that no message has, and the
   * rights of an operator. Ends the sessions, and deletes their client and network. The username stays,
   * so that nobody else can have it. Returns false, and changes nothing, when the account is erased
   * already.
   */
  async eraseAccount(
    db: Sql,
    { id, username }: AccountRecord,
    { messages, at }: NewErasure,
  ): Promise<boolean> {
    await db.ownRow("accounts", id);
    const erased = await db.change(
      `UPDATE accounts
       SET password_hash = NULL, external_id = NULL, metadata = NULL, policy = NULL, erased_at = $2,
         suspended_at = coalesce(suspended_at, $2)
       WHERE id = $1 AND erased_at IS NULL`,
      [id, at],
    );
    if (erased === 0) return false;
    // Nobody reads its mentions, hidden messages and final departures any more, and others only add to them.
    db.changesUnowned();
    await db.change("UPDATE accounts SET erased_at = $2 WHERE owner_id = $1", [id, at]);
    await db.change(
      `UPDATE sessions SET user_agent = NULL, network = NULL, ended_at = coalesce(ended_at, $2)
       WHERE account_id = $1`,
      [id, at],
    );
    for (const sql of DELETIONS) await db.change(sql, [id]);
    await db.change("DELETE FROM incoming_hooks WHERE creator = $1", [username]);
    await deleteUnusedFilesOf(db, id);
    await insert(db, "erasures", { account_id: id, messages, created_at: at });
    return true;
  },
  /**
   * Deletes what only the owner of an agent saw of tool calls of a conversation, and what their tools
   * asked. The arguments stay with the messages. The unit owns the conversation then.
   */
  async eraseToolCalls(db: Sql, conversationId: number, uuids: readonly string[]): Promise<void> {
    await db.own(conversationId);
    await db.change(
      `UPDATE tool_calls SET result = NULL, error = NULL, note = NULL, provider_fields = NULL
       WHERE uuid = ANY($1::uuid[])`,
      [db.list(uuids)],
    );
    await db.change("DELETE FROM elicitations WHERE call_uuid = ANY($1::uuid[])", [db.list(uuids)]);
  },
  /** Records that all steps are finished. */
  finishErasure: (db: Sql, accountId: number) => remove(db, "erasures", { account_id: accountId }),
};

export interface ToolCallPlace {
  readonly uuid: string;
  readonly conversation_id: number;
}

export interface NewErasure {
  /** Whether the messages of the person and of their agents are deleted too. */
  readonly messages: boolean;
  readonly at: number;
}

export interface ErasureRecord {
  readonly account: AccountRecord;
  readonly messages: boolean;
}

/** Tables whose rows concern one account alone. */
const PERSONAL = [
  "account_names",
  "identities",
  "operators",
  "second_factors",
  "recovery_codes",
  "password_resets",
  "hidden",
  "mentions",
  "blocks",
];

const OWNED = "SELECT id FROM accounts WHERE owner_id = $1";

/** Statements that delete what other tables have of a person, or of an agent. */
const DELETIONS = [
  ...PERSONAL.map((table) => `DELETE FROM ${table} WHERE account_id = $1`),
  `DELETE FROM final_departures WHERE account_id = $1
     AND conversation_id IN (SELECT conversation_id FROM former_members WHERE account_id = $1)`,
  "DELETE FROM agent_keys WHERE owner_id = $1",
  "DELETE FROM tool_servers WHERE owner_id = $1",
  `DELETE FROM tool_grants WHERE agent_id = $1 OR agent_id IN (${OWNED})`,
  "DELETE FROM upload_usage WHERE owner_id = $1",
  ...["agents", "agent_tokens", "agent_presence"].map(
    (table) => `DELETE FROM ${table} WHERE account_id = $1 OR account_id IN (${OWNED})`,
  ),
];
