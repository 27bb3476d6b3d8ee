import { dayOf } from "../../rules/time.ts";
import type { AgentReads, AgentWrites, SealedKey } from "../agents.ts";
import { SEALED_KEYS } from "../sealed-texts.ts";
import {
  AGENT,
  AGENTS_OF_OWNER,
  type AgentRow,
  CONVERSATION_AGENTS,
  type ConversationAgentRow,
  limitValues,
  RESEAL_AGENT_KEY,
  SET_AGENT_KEY,
  SET_AGENT_LIMITS,
  SET_AGENT_PROFILE,
  toAgent,
  toConversationAgent,
} from "../shared/agents.ts";
import type { Connection } from "./connection.ts";

export function agentReads(db: Connection): AgentReads {
  const byOwner = db.query<AgentRow>(AGENTS_OF_OWNER);
  const byId = db.query<AgentRow>(`${AGENT} WHERE a.id = ?`);
  const inConversation = db.query<ConversationAgentRow>(CONVERSATION_AGENTS);
  const keys = db.query<SealedKey>(SEALED_KEYS);
  return {
    agents: (ownerId) => byOwner.all(ownerId).map(toAgent),
    agent: (accountId) => {
      const row = byId.get(accountId);
      return row && toAgent(row);
    },
    conversationAgents: (conversationId) =>
      inConversation.all(conversationId).map(toConversationAgent),
    sealedKeys: () => keys.all(),
  };
}

export function agentWrites(db: Connection): AgentWrites {
  const setKey = db.change(SET_AGENT_KEY);
  const reseal = db.change(RESEAL_AGENT_KEY);
  const removeKey = db.change("DELETE FROM agent_keys WHERE owner_id = ? AND provider = ?");
  const setProfile = db.change(SET_AGENT_PROFILE);
  const setProvider = db.change(
    "UPDATE accounts SET provider = ?2, provider_day = ?3 WHERE id = ?1",
  );
  const setLimits = db.change(SET_AGENT_LIMITS);
  const setMode = db.change(
    "UPDATE members SET always_on = ?3 WHERE conversation_id = ?1 AND account_id = ?2",
  );
  return {
    setAgentKey: ({ owner_id, provider, sealed, tail, at }) =>
      void setKey.run(owner_id, provider, sealed, tail, at),
    resealKey: (key, sealed) => void reseal.run(key.owner_id, key.provider, key.sealed, sealed),
    removeAgentKey: (ownerId, provider) => void removeKey.run(ownerId, provider),
    setAgentProfile: (accountId, { model, instructions }) =>
      void setProfile.run(accountId, model, instructions),
    setAgentProvider: (accountId, provider, at) =>
      void setProvider.run(accountId, provider, dayOf(at)),
    setAgentLimits: (accountId, limits) => void setLimits.run(accountId, ...limitValues(limits)),
    setAlwaysOn: (conversationId, accountId, alwaysOn) =>
      void setMode.run(conversationId, accountId, alwaysOn ? 1 : 0),
  };
}
