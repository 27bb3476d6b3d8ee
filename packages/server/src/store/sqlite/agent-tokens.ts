import type { AgentTokenReads, AgentTokenWrites } from "../agent-tokens.ts";
import {
  AGENT_TOKEN_BY_HASH,
  AGENT_TOKENS,
  type AgentTokenRow,
  INSERT_AGENT_TOKEN,
  toAgentToken,
  VALID_AGENT_TOKEN,
} from "../shared/agent-tokens.ts";
import type { Connection } from "./connection.ts";

export function agentTokenReads(db: Connection): AgentTokenReads {
  const byHash = db.query<AgentTokenRow>(AGENT_TOKEN_BY_HASH);
  const valid = db.query(VALID_AGENT_TOKEN);
  const byOwner = db.query<AgentTokenRow>(AGENT_TOKENS);
  return {
    agentToken: (tokenHash) => {
      const row = byHash.get(tokenHash);
      return row && toAgentToken(row);
    },
    isAgentTokenValid: (id) => valid.get(id) !== null,
    agentTokens: (ownerId) => byOwner.all(ownerId).map(toAgentToken),
  };
}

export function agentTokenWrites(db: Connection): AgentTokenWrites {
  const insert = db.change(INSERT_AGENT_TOKEN);
  const touch = db.change("UPDATE agent_tokens SET last_used_at = ?2 WHERE id = ?1");
  const remove = db.change("DELETE FROM agent_tokens WHERE id = ?");
  return {
    insertAgentToken: ({ id, token_hash, account_id, name, at }) =>
      void insert.run(id, token_hash, account_id, name, at),
    touchAgentToken: (id, lastUsedAt) => void touch.run(id, lastUsedAt),
    deleteAgentTokens: (ids) => {
      for (const id of ids) remove.run(id);
    },
  };
}
