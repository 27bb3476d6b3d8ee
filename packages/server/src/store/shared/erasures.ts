import type { AccountRecord } from "../accounts.ts";
import type { ErasureRecord } from "../erasures.ts";
import { ACCOUNT, accountOf } from "./accounts.ts";

export const OPEN_ERASURES = `SELECT ${ACCOUNT}, e.messages FROM erasures e
  JOIN accounts a ON a.id = e.account_id ORDER BY e.created_at, e.account_id`;

export type ErasureRow = AccountRecord & { messages: boolean | number };

export const toErasure = (row: ErasureRow): ErasureRecord => ({
  account: accountOf(row),
  messages: Boolean(row.messages),
});

/** Erases the account unless it is erased already. The parameters are its id and the time. */
export const ERASE_ACCOUNT = `UPDATE accounts
  SET password_hash = NULL, external_id = NULL, metadata = NULL, policy = NULL, erased_at = $2,
    suspended_at = coalesce(suspended_at, $2)
  WHERE id = $1 AND erased_at IS NULL`;

interface Statement {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/** Statements that delete what other tables have of a person, or of an agent. */
export function erasureStatements({ id, username }: AccountRecord, at: number): Statement[] {
  const owned = "SELECT id FROM accounts WHERE owner_id = $1";
  const byId = (sql: string) => ({ sql, values: [id] });
  return [
    {
      sql: "UPDATE accounts SET erased_at = $2 WHERE owner_id = $1",
      values: [id, at],
    },
    {
      sql: `UPDATE sessions SET user_agent = NULL, network = NULL,
        ended_at = coalesce(ended_at, $2) WHERE account_id = $1`,
      values: [id, at],
    },
    ...PERSONAL.map((table) => byId(`DELETE FROM ${table} WHERE account_id = $1`)),
    byId("DELETE FROM agent_keys WHERE owner_id = $1"),
    byId("DELETE FROM tool_servers WHERE owner_id = $1"),
    byId(`DELETE FROM tool_grants WHERE agent_id = $1 OR agent_id IN (${owned})`),
    byId("DELETE FROM upload_usage WHERE owner_id = $1"),
    ...["agents", "agent_tokens", "agent_presence"].map((table) =>
      byId(`DELETE FROM ${table} WHERE account_id = $1 OR account_id IN (${owned})`),
    ),
    { sql: "DELETE FROM incoming_hooks WHERE creator = $1", values: [username] },
  ];
}

/** The parameter is the id of the owner. */
export const TOOL_CALLS_TO_ERASE = `SELECT uuid, conversation_id FROM tool_calls
  WHERE owner_id = $1 AND coalesce(result, error, note, provider_fields) IS NOT NULL
  UNION SELECT call_uuid, conversation_id FROM elicitations WHERE owner_id = $1`;

/** Statements with a condition on the ids of calls, whose parameter is the only one. */
export const toolCallErasures = (isGiven: string) => [
  `UPDATE tool_calls SET result = NULL, error = NULL, note = NULL, provider_fields = NULL
   WHERE uuid ${isGiven}`,
  `DELETE FROM elicitations WHERE call_uuid ${isGiven}`,
];

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
  "final_departures",
];
