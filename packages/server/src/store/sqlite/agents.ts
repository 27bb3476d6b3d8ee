import { dayOf } from "../../rules/time.ts";
import type { AgentReads, AgentWrites, SealedKey } from "../agents.ts";
import {
  AGENT,
  type AgentRow,
  CONVERSATION_AGENT,
  type ConversationAgentRow,
  IS_CREATED,
  toAgent,
  toConversationAgent,
} from "../shared/agents.ts";
import type { Connection } from "./connection.ts";

export function agentReads(db: Connection): AgentReads {
  const byOwner = db.query<AgentRow>(
    `${AGENT} WHERE a.owner_id = ? AND a.provider IS NOT NULL AND a.erased_at IS NULL
     ORDER BY ${IS_CREATED}, a.username`,
  );
  const byId = db.query<AgentRow>(`${AGENT} WHERE a.id = ?`);
  const inConversation = db.query<ConversationAgentRow>(
    `${CONVERSATION_AGENT} WHERE m.conversation_id = ? ORDER BY m.position`,
  );
  const keys = db.query<SealedKey>("SELECT owner_id, provider, sealed FROM agent_keys");
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
  const setKey = db.change(
    `INSERT INTO agent_keys (owner_id, provider, sealed, tail, updated_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (owner_id, provider) DO UPDATE
     SET sealed = excluded.sealed, tail = excluded.tail, updated_at = excluded.updated_at`,
  );
  const reseal = db.change(
    "UPDATE agent_keys SET sealed = ?4 WHERE owner_id = ?1 AND provider = ?2 AND sealed = ?3",
  );
  const removeKey = db.change("DELETE FROM agent_keys WHERE owner_id = ? AND provider = ?");
  const setProfile = db.change(
    `INSERT INTO agents (account_id, model, instructions) VALUES (?, ?, ?)
     ON CONFLICT (account_id) DO UPDATE
     SET model = excluded.model, instructions = excluded.instructions`,
  );
  const setProvider = db.change(
    "UPDATE accounts SET provider = ?2, provider_day = ?3 WHERE id = ?1",
  );
  const setLimits = db.change(
    `INSERT INTO agents (account_id, limits_set, spenders, daily_tokens, chat_daily_tokens,
       turns_per_minute, waiting_turns) VALUES (?, 1, ?, ?, ?, ?, ?)
     ON CONFLICT (account_id) DO UPDATE SET limits_set = 1, spenders = excluded.spenders,
       daily_tokens = excluded.daily_tokens, chat_daily_tokens = excluded.chat_daily_tokens,
       turns_per_minute = excluded.turns_per_minute, waiting_turns = excluded.waiting_turns`,
  );
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
    setAgentLimits: (accountId, limits) =>
      void setLimits.run(
        accountId,
        limits.spenders,
        limits.daily_tokens,
        limits.chat_daily_tokens,
        limits.turns_per_minute,
        limits.waiting_turns,
      ),
    setAlwaysOn: (conversationId, accountId, alwaysOn) =>
      void setMode.run(conversationId, accountId, alwaysOn ? 1 : 0),
  };
}
