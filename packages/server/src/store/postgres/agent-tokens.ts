import type { AgentTokenReads, AgentTokenWrites } from "../agent-tokens.ts";
import {
  AGENT_TOKEN_BY_HASH,
  AGENT_TOKENS,
  type AgentTokenRow,
  INSERT_AGENT_TOKEN,
  toAgentToken,
  VALID_AGENT_TOKEN,
} from "../shared/agent-tokens.ts";
import { list, type Methods } from "./unit.ts";

export const agentTokenReads: Methods<keyof AgentTokenReads> = {
  agentToken: async (unit, tokenHash) => {
    const row = await unit.get<AgentTokenRow>(AGENT_TOKEN_BY_HASH, tokenHash);
    return row && toAgentToken(row);
  },
  isAgentTokenValid: async (unit, id) => (await unit.get(VALID_AGENT_TOKEN, id)) !== null,
  agentTokens: async (unit, ownerId) =>
    (await unit.all<AgentTokenRow>(AGENT_TOKENS, ownerId)).map(toAgentToken),
};

export const agentTokenWrites: Methods<keyof AgentTokenWrites> = {
  insertAgentToken: async (unit, { id, token_hash, account_id, name, at }) => {
    await unit.write(INSERT_AGENT_TOKEN, id, token_hash, account_id, name, at);
  },
  touchAgentToken: async (unit, id, lastUsedAt) => {
    await unit.write("UPDATE agent_tokens SET last_used_at = $2 WHERE id = $1", id, lastUsedAt);
  },
  deleteAgentTokens: async (unit, ids) => {
    await unit.write("DELETE FROM agent_tokens WHERE id = ANY($1::uuid[])", list(ids));
  },
};
