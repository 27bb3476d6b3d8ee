import { type AccountRecord, accountAs } from "./account-records.ts";
import { reader, type Sql, sql } from "./sql.ts";

/** The tokens with which programs connect as external agents. Only their hashes are stored. */
export const agentTokenReads = {
  /** The token with that hash, unless it was deleted. The owner of its agent may be suspended. */
  agentToken: (db: Sql, tokenHash: string) =>
    db.getAs(readToken)`${AGENT_TOKENS} WHERE k.token_hash = ${tokenHash}`,
  /** Whether the token exists, and the owner of its agent is not suspended. */
  isAgentTokenValid: (db: Sql, id: string) =>
    db.exists`
      SELECT 1 FROM agent_tokens k JOIN accounts a ON a.id = k.account_id
      JOIN accounts o ON o.id = a.owner_id AND o.suspended_at IS NULL WHERE k.id = ${id}`,
  /** The tokens of all agents of an owner, ordered by creation. */
  agentTokens: (db: Sql, ownerId: number) =>
    db.allAs(readToken)`${AGENT_TOKENS} WHERE a.owner_id = ${ownerId} ORDER BY k.created_at, k.id`,
};

export const agentTokenWrites = {
  async insertAgentToken(db: Sql, { at, ...token }: NewAgentToken): Promise<void> {
    await db.insert("agent_tokens", { ...token, created_at: at });
  },
  /** Stores when a token was last used. */
  touchAgentToken: (db: Sql, id: string, lastUsedAt: number) =>
    db.update("agent_tokens", { id }, { last_used_at: lastUsedAt }),
  /** Deletes tokens. Ignores ids that do not exist. */
  async deleteAgentTokens(db: Sql, ids: readonly string[]): Promise<void> {
    await db.change`DELETE FROM agent_tokens WHERE id = ANY(${ids}::uuid[])`;
  },
};

export interface AgentTokenRecord {
  readonly id: string;
  readonly account: AccountRecord;
  readonly name: string;
  readonly created_at: number;
  readonly last_used_at: number | null;
}

export interface NewAgentToken {
  id: string;
  token_hash: string;
  account_id: number;
  name: string;
  at: number;
}

/** Selects tokens with their agents. */
const AGENT_TOKENS = sql`SELECT k.id, k.name, k.created_at, k.last_used_at, ${accountAs("account")}
  FROM agent_tokens k JOIN accounts a ON a.id = k.account_id`;

const readToken = reader<AgentTokenRecord>();
