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
import type { Methods } from "./unit.ts";

export const agentReads: Methods<keyof AgentReads> = {
  agents: async (unit, ownerId) => {
    const rows = await unit.all<AgentRow>(
      `${AGENT} WHERE a.owner_id = $1 AND a.provider IS NOT NULL AND a.erased_at IS NULL
       ORDER BY ${IS_CREATED}, a.username COLLATE "C"`,
      ownerId,
    );
    return rows.map(toAgent);
  },
  agent: async (unit, accountId) => {
    const row = await unit.get<AgentRow>(`${AGENT} WHERE a.id = $1`, accountId);
    return row && toAgent(row);
  },
  conversationAgents: async (unit, conversationId) => {
    const rows = await unit.all<ConversationAgentRow>(
      `${CONVERSATION_AGENT} WHERE m.conversation_id = $1 ORDER BY m.position`,
      conversationId,
    );
    return rows.map(toConversationAgent);
  },
  sealedKeys: (unit) => unit.all<SealedKey>("SELECT owner_id, provider, sealed FROM agent_keys"),
};

export const agentWrites: Methods<keyof AgentWrites> = {
  setAgentKey: async (unit, { owner_id, provider, sealed, tail, at }) => {
    await unit.change(
      `INSERT INTO agent_keys (owner_id, provider, sealed, tail, updated_at)
       VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner_id, provider) DO UPDATE
       SET sealed = excluded.sealed, tail = excluded.tail, updated_at = excluded.updated_at`,
      owner_id,
      provider,
      sealed,
      tail,
      at,
    );
  },
  resealKey: async (unit, key, sealed) => {
    await unit.change(
      "UPDATE agent_keys SET sealed = $4 WHERE owner_id = $1 AND provider = $2 AND sealed = $3",
      key.owner_id,
      key.provider,
      key.sealed,
      sealed,
    );
  },
  removeAgentKey: async (unit, ownerId, provider) => {
    await unit.change(
      "DELETE FROM agent_keys WHERE owner_id = $1 AND provider = $2",
      ownerId,
      provider,
    );
  },
  setAgentProfile: async (unit, accountId, { model, instructions }) => {
    await unit.change(
      `INSERT INTO agents (account_id, model, instructions) VALUES ($1, $2, $3)
       ON CONFLICT (account_id) DO UPDATE
       SET model = excluded.model, instructions = excluded.instructions`,
      accountId,
      model,
      instructions,
    );
  },
  setAgentProvider: async (unit, accountId, provider, at) => {
    await unit.ownRow("accounts", accountId);
    await unit.change(
      "UPDATE accounts SET provider = $2, provider_day = $3 WHERE id = $1",
      accountId,
      provider,
      dayOf(at),
    );
  },
  setAgentLimits: async (unit, accountId, limits) => {
    await unit.change(
      `INSERT INTO agents (account_id, limits_set, spenders, daily_tokens, chat_daily_tokens,
         turns_per_minute, waiting_turns) VALUES ($1, true, $2, $3, $4, $5, $6)
       ON CONFLICT (account_id) DO UPDATE SET limits_set = true, spenders = excluded.spenders,
         daily_tokens = excluded.daily_tokens, chat_daily_tokens = excluded.chat_daily_tokens,
         turns_per_minute = excluded.turns_per_minute, waiting_turns = excluded.waiting_turns`,
      accountId,
      limits.spenders,
      limits.daily_tokens,
      limits.chat_daily_tokens,
      limits.turns_per_minute,
      limits.waiting_turns,
    );
  },
  setAlwaysOn: async (unit, conversationId, accountId, alwaysOn) => {
    await unit.own(conversationId);
    await unit.change(
      "UPDATE members SET always_on = $3 WHERE conversation_id = $1 AND account_id = $2",
      conversationId,
      accountId,
      alwaysOn,
    );
  },
};
