import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** The tokens with which programs connect as external agents. Only their hashes are stored. */
export interface AgentTokenReads {
  agentToken(tokenHash: string): Awaitable<AgentTokenRecord | null>;
  /** Whether the token is not revoked, and the owner of its agent not suspended. */
  isAgentTokenValid(id: string): Awaitable<boolean>;
  /** The tokens of all agents of an owner, ordered by creation. */
  agentTokens(ownerId: number): Awaitable<AgentTokenRecord[]>;
}

export interface AgentTokenWrites {
  insertAgentToken(token: NewAgentToken): Awaitable<void>;
  touchAgentToken(id: string, lastUsedAt: number): Awaitable<void>;
  /** Deletes the tokens among these. */
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
