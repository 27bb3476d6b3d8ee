import { ACCOUNTS, type AccountRecord, accountAs } from "./account-records.ts";
import { deleteUnusedFilesOf } from "./files.ts";
import { type Fragment, raw, reader, type Sql, sql } from "./sql.ts";

/**
 * The erasure of accounts. `eraseAccount` does what must happen at once. What takes long, such as
 * deleting messages, follows in steps; the erasure is open until they are finished, so that a later
 * process continues after a crash.
 */
export const erasureReads = {
  /** Erasures whose steps are not finished, oldest first. */
  openErasures: (db: Sql) =>
    db.allAs(readErasure)`
      SELECT ${accountAs("account")}, e.messages FROM erasures e
      JOIN accounts a ON a.id = e.account_id ORDER BY e.created_at, e.account_id`,
  /** The accounts that a person owns, erased ones included: agents, and those of incoming hooks. */
  ownedAccounts: (db: Sql, ownerId: number) =>
    db.all<AccountRecord>`${ACCOUNTS} WHERE a.owner_id = ${ownerId} ORDER BY a.id`,
  /**
   * Tool calls of which something is stored that only the owner of their agents saw, or whose tools have
   * asked the owner something.
   */
  toolCallsToErase: (db: Sql, ownerId: number) =>
    db.all<ToolCallPlace>`
      SELECT uuid, conversation_id FROM tool_calls
      WHERE owner_id = ${ownerId} AND coalesce(result, error, note, provider_fields) IS NOT NULL
      UNION SELECT call_uuid, conversation_id FROM elicitations WHERE owner_id = ${ownerId}`,
};

export const erasureWrites = {
  /**
   * Marks the account of a person or an agent, and those that it owns, as erased, and begins an open
   * erasure. Deletes the password, the external id, metadata, identities, names to be found by, provider
   * keys, settings of agents, incoming hooks, hidden messages, uploads that no message has, when
   * the person was last seen, and the rights of an operator. Ends the sessions, and deletes their client and network. The username stays,
   * so that nobody else can have it. Returns false, and changes nothing, when the account is erased
   * already.
   */
  async eraseAccount(db: Sql, { id, username }: AccountRecord, { messages, at }: NewErasure) {
    await db.ownRow("accounts", id);
    const erased = await db.change`
      UPDATE accounts SET password_hash = NULL, external_id = NULL, metadata = NULL, policy = NULL,
        erased_at = ${at}, suspended_at = coalesce(suspended_at, ${at})
      WHERE id = ${id} AND erased_at IS NULL`;
    if (erased === 0) return false;
    // Nobody reads its mentions, hidden messages and final departures any more, and others only add to them.
    db.changesUnowned();
    await db.change`UPDATE accounts SET erased_at = ${at} WHERE owner_id = ${id}`;
    await db.change`
      UPDATE sessions SET user_agent = NULL, network = NULL, ended_at = coalesce(ended_at, ${at})
      WHERE account_id = ${id}`;
    for (const deletion of deletionsOf(id)) await db.change`${deletion}`;
    await db.change`DELETE FROM incoming_hooks WHERE creator = ${username}`;
    await deleteUnusedFilesOf(db, id);
    await db.insert("erasures", { account_id: id, messages, created_at: at });
    return true;
  },
  /**
   * Deletes what only the owner of an agent saw of tool calls of a conversation, and what their tools
   * asked. The arguments stay with the messages. The unit owns the conversation then.
   */
  async eraseToolCalls(db: Sql, conversationId: number, uuids: readonly string[]): Promise<void> {
    await db.own(conversationId);
    await db.change`
      UPDATE tool_calls SET result = NULL, error = NULL, note = NULL, provider_fields = NULL
      WHERE uuid = ANY(${uuids}::uuid[])`;
    await db.change`DELETE FROM elicitations WHERE call_uuid = ANY(${uuids}::uuid[])`;
  },
  /** Records that all steps are finished. */
  finishErasure: (db: Sql, accountId: number) => db.remove("erasures", { account_id: accountId }),
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

const readErasure = reader<ErasureRecord>({ flags: ["messages"] });

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
  "last_seen",
];

/** Statements that delete what other tables have of a person, or of an agent. */
function deletionsOf(id: number): Fragment[] {
  const owned = sql`SELECT id FROM accounts WHERE owner_id = ${id}`;
  return [
    ...PERSONAL.map((table) => sql`DELETE FROM ${raw(table)} WHERE account_id = ${id}`),
    sql`DELETE FROM final_departures WHERE account_id = ${id} AND conversation_id IN (
      SELECT conversation_id FROM former_members WHERE account_id = ${id})`,
    sql`DELETE FROM agent_keys WHERE owner_id = ${id}`,
    sql`DELETE FROM tool_servers WHERE owner_id = ${id}`,
    sql`DELETE FROM tool_grants WHERE agent_id = ${id} OR agent_id IN (${owned})`,
    sql`DELETE FROM upload_usage WHERE owner_id = ${id}`,
    ...["agents", "agent_tokens", "agent_presence"].map(
      (table) =>
        sql`DELETE FROM ${raw(table)} WHERE account_id = ${id} OR account_id IN (${owned})`,
    ),
  ];
}
