import type { AccountRecord } from "../accounts.ts";
import type { AgentTokenRecord } from "../agent-tokens.ts";
import { ACCOUNT, accountOf } from "./accounts.ts";

/** Selects `AgentTokenRow`s: tokens with their agents. */
const AGENT_TOKEN = `SELECT k.id AS token_id, k.name, k.created_at, k.last_used_at, ${ACCOUNT}
  FROM agent_tokens k JOIN accounts a ON a.id = k.account_id`;

export const AGENT_TOKEN_BY_HASH = `${AGENT_TOKEN} WHERE k.token_hash = $1`;
export const AGENT_TOKENS = `${AGENT_TOKEN} WHERE a.owner_id = $1 ORDER BY k.created_at, k.id`;

/** Selects a row if the agent of the token has an owner who is not suspended. */
export const VALID_AGENT_TOKEN = `SELECT 1 FROM agent_tokens k JOIN accounts a ON a.id = k.account_id
  JOIN accounts o ON o.id = a.owner_id AND o.suspended_at IS NULL WHERE k.id = $1`;

export const INSERT_AGENT_TOKEN = `INSERT INTO agent_tokens
    (id, token_hash, account_id, name, created_at)
  VALUES ($1, $2, $3, $4, $5)`;

export type AgentTokenRow = AccountRecord &
  Pick<AgentTokenRecord, "name" | "created_at" | "last_used_at"> & { token_id: string };

export const toAgentToken = (row: AgentTokenRow): AgentTokenRecord => ({
  id: row.token_id,
  account: accountOf(row),
  name: row.name,
  created_at: row.created_at,
  last_used_at: row.last_used_at,
});
