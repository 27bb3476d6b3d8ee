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
import type { Methods } from "./unit.ts";

export const agentReads: Methods<keyof AgentReads> = {
  agents: async (unit, ownerId) => {
    const rows = await unit.all<AgentRow>(`${AGENTS_OF_OWNER} COLLATE "C"`, ownerId);
    return rows.map(toAgent);
  },
  agent: async (unit, accountId) => {
    const row = await unit.get<AgentRow>(`${AGENT} WHERE a.id = $1`, accountId);
    return row && toAgent(row);
  },
  conversationAgents: async (unit, conversationId) => {
    const rows = await unit.all<ConversationAgentRow>(CONVERSATION_AGENTS, conversationId);
    return rows.map(toConversationAgent);
  },
  sealedKeys: (unit) => unit.all<SealedKey>(SEALED_KEYS),
};

export const agentWrites: Methods<keyof AgentWrites> = {
  setAgentKey: async (unit, { owner_id, provider, sealed, tail, at }) => {
    await unit.write(SET_AGENT_KEY, owner_id, provider, sealed, tail, at);
  },
  resealKey: async (unit, key, sealed) => {
    await unit.write(RESEAL_AGENT_KEY, key.owner_id, key.provider, key.sealed, sealed);
  },
  removeAgentKey: async (unit, ownerId, provider) => {
    await unit.write(
      "DELETE FROM agent_keys WHERE owner_id = $1 AND provider = $2",
      ownerId,
      provider,
    );
  },
  setAgentProfile: async (unit, accountId, { model, instructions }) => {
    await unit.write(SET_AGENT_PROFILE, accountId, model, instructions);
  },
  setAgentProvider: async (unit, accountId, provider, at) => {
    await unit.ownRow("accounts", accountId);
    await unit.write(
      "UPDATE accounts SET provider = $2, provider_day = $3 WHERE id = $1",
      accountId,
      provider,
      dayOf(at),
    );
  },
  setAgentLimits: async (unit, accountId, limits) => {
    await unit.write(SET_AGENT_LIMITS, accountId, ...limitValues(limits));
  },
  setAlwaysOn: async (unit, conversationId, accountId, alwaysOn) => {
    await unit.own(conversationId);
    await unit.write(
      "UPDATE members SET always_on = $3 WHERE conversation_id = $1 AND account_id = $2",
      conversationId,
      accountId,
      alwaysOn,
    );
  },
};
