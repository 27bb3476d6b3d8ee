import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** The tokens with which programs connect as external agents. Only their hashes are stored. */
export interface AgentTokenReads {
  /** The token with that hash, unless it was deleted. The owner of its agent may be suspended. */
  agentToken(tokenHash: string): Awaitable<AgentTokenRecord | null>;
  /** Whether the token exists, and the owner of its agent is not suspended. */
  isAgentTokenValid(id: string): Awaitable<boolean>;
  /** The tokens of all agents of an owner, ordered by creation. */
  agentTokens(ownerId: number): Awaitable<AgentTokenRecord[]>;
}

export interface AgentTokenWrites {
  insertAgentToken(token: NewAgentToken): Awaitable<void>;
  /** Stores when a token was last used. */
  touchAgentToken(id: string, lastUsedAt: number): Awaitable<void>;
  /** Deletes tokens. Ignores ids that do not exist. */
  deleteAgentTokens(ids: readonly string[]): Awaitable<void>;
}

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
