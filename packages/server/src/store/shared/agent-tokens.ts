import type { AccountRecord } from "../accounts.ts";
import type { AgentTokenRecord } from "../agent-tokens.ts";
import { ACCOUNT, accountOf } from "./accounts.ts";

/** Selects `AgentTokenRow`s: tokens with their agents. */
export const AGENT_TOKEN = `SELECT k.id AS token_id, k.name, k.created_at, k.last_used_at, ${ACCOUNT}
  FROM agent_tokens k JOIN accounts a ON a.id = k.account_id`;

/** Selects a row for each token whose agent has an owner who is not suspended. */
export const VALID_AGENT_TOKEN = `SELECT 1 FROM agent_tokens k JOIN accounts a ON a.id = k.account_id
  JOIN accounts o ON o.id = a.owner_id AND o.suspended_at IS NULL`;

export type AgentTokenRow = AccountRecord &
  Pick<AgentTokenRecord, "name" | "created_at" | "last_used_at"> & { token_id: string };

export const toAgentToken = (row: AgentTokenRow): AgentTokenRecord => ({
  id: row.token_id,
  account: accountOf(row),
  name: row.name,
  created_at: row.created_at,
  last_used_at: row.last_used_at,
});
