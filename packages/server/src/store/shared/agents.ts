import type { AgentLimits } from "@parley/protocol";
import { DEFAULT_LIMITS } from "../../rules/budget.ts";
import type { AccountRecord } from "../accounts.ts";
import type { AgentRecord, ConversationAgent } from "../agents.ts";
import { ACCOUNT, accountOf, type JoinedAccount, joinedAccount } from "./accounts.ts";

const owner = joinedAccount("owner");

/** Selects `AgentRow`s: an agent with its owner, profile, limits and key. */
export const AGENT = `SELECT ${ACCOUNT}, ${owner.columns}, owner.suspended_at AS owner_suspended_at,
    g.model, g.instructions, g.limits_set, g.spenders, g.daily_tokens, g.chat_daily_tokens,
    g.turns_per_minute, g.waiting_turns, k.sealed AS sealed_key, k.tail AS key_tail
  FROM accounts a
  JOIN accounts owner ON owner.id = a.owner_id
  LEFT JOIN agents g ON g.account_id = a.id
  LEFT JOIN agent_keys k ON k.owner_id = a.owner_id AND k.provider = a.provider`;

/** Sorts default agents, which are named after their provider, before others. */
export const IS_CREATED = "(a.username <> owner.username || ':' || a.provider)";

export type AgentRow = AccountRecord &
  JoinedAccount<"owner"> &
  AgentLimits & {
    /** False, or null for an agent without settings: the default limits apply. */
    limits_set: boolean | number | null;
    model: string | null;
    instructions: string | null;
    sealed_key: string | null;
    key_tail: string | null;
    owner_suspended_at: number | null;
  };

export const toAgent = (row: AgentRow): AgentRecord => ({
  account: accountOf(row),
  owner: {
    ...owner.of(row),
    id: row.owner_id ?? 0,
    owner_id: null,
    provider: null,
    suspended_at: row.owner_suspended_at,
  },
  model: row.model,
  instructions: row.instructions,
  limits: row.limits_set
    ? {
        spenders: row.spenders,
        daily_tokens: row.daily_tokens,
        chat_daily_tokens: row.chat_daily_tokens,
        turns_per_minute: row.turns_per_minute,
        waiting_turns: row.waiting_turns,
      }
    : DEFAULT_LIMITS,
  sealed_key: row.sealed_key,
  key_tail: row.key_tail,
});

/** Selects `ConversationAgentRow`s: the agents of conversations. `m` is the alias of the members. */
export const CONVERSATION_AGENT = `SELECT ${ACCOUNT}, m.always_on,
    coalesce(g.spenders, '${DEFAULT_LIMITS.spenders}') AS spenders,
    coalesce(g.waiting_turns, ${DEFAULT_LIMITS.waiting_turns}) AS waiting_turns,
    o.suspended_at IS NOT NULL AS is_suspended
  FROM members m
  JOIN accounts a ON a.id = m.account_id AND a.kind = 'agent' AND a.erased_at IS NULL
  JOIN accounts o ON o.id = a.owner_id
  LEFT JOIN agents g ON g.account_id = a.id`;

export type ConversationAgentRow = AccountRecord &
  Omit<ConversationAgent, "account" | "always_on" | "is_suspended"> & {
    always_on: boolean | number;
    is_suspended: boolean | number;
  };

export const toConversationAgent = (row: ConversationAgentRow): ConversationAgent => ({
  account: accountOf(row),
  always_on: Boolean(row.always_on),
  spenders: row.spenders,
  waiting_turns: row.waiting_turns,
  is_suspended: Boolean(row.is_suspended),
});
