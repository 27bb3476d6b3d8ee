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

/** The agents of an owner. Sorts default ones, which are named after their provider, before others. */
export const AGENTS_OF_OWNER = `${AGENT}
  WHERE a.owner_id = $1 AND a.provider IS NOT NULL AND a.erased_at IS NULL
  ORDER BY (a.username <> owner.username || ':' || a.provider), a.username`;

export const SET_AGENT_KEY = `INSERT INTO agent_keys (owner_id, provider, sealed, tail, updated_at)
  VALUES ($1, $2, $3, $4, $5) ON CONFLICT (owner_id, provider) DO UPDATE
  SET sealed = excluded.sealed, tail = excluded.tail, updated_at = excluded.updated_at`;

export const RESEAL_AGENT_KEY =
  "UPDATE agent_keys SET sealed = $4 WHERE owner_id = $1 AND provider = $2 AND sealed = $3";

export const SET_AGENT_PROFILE = `INSERT INTO agents (account_id, model, instructions)
  VALUES ($1, $2, $3) ON CONFLICT (account_id) DO UPDATE
  SET model = excluded.model, instructions = excluded.instructions`;

export const SET_AGENT_LIMITS = `INSERT INTO agents (account_id, limits_set, spenders, daily_tokens,
    chat_daily_tokens, turns_per_minute, waiting_turns) VALUES ($1, true, $2, $3, $4, $5, $6)
  ON CONFLICT (account_id) DO UPDATE SET limits_set = true, spenders = excluded.spenders,
    daily_tokens = excluded.daily_tokens, chat_daily_tokens = excluded.chat_daily_tokens,
    turns_per_minute = excluded.turns_per_minute, waiting_turns = excluded.waiting_turns`;

/** The parameters of `SET_AGENT_LIMITS` after the account. */
export const limitValues = (limits: AgentLimits) => [
  limits.spenders,
  limits.daily_tokens,
  limits.chat_daily_tokens,
  limits.turns_per_minute,
  limits.waiting_turns,
];

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

/** Selects `ConversationAgentRow`s. */
export const CONVERSATION_AGENTS = `SELECT ${ACCOUNT}, m.always_on,
    coalesce(g.spenders, '${DEFAULT_LIMITS.spenders}') AS spenders,
    coalesce(g.waiting_turns, ${DEFAULT_LIMITS.waiting_turns}) AS waiting_turns,
    o.suspended_at IS NOT NULL AS is_suspended
  FROM members m
  JOIN accounts a ON a.id = m.account_id AND a.kind = 'agent' AND a.erased_at IS NULL
  JOIN accounts o ON o.id = a.owner_id
  LEFT JOIN agents g ON g.account_id = a.id
  WHERE m.conversation_id = $1 ORDER BY m.position`;

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
