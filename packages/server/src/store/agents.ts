import type { AgentLimits } from "@parley/protocol";
import { DEFAULT_LIMITS } from "../rules/budget.ts";
import { dayOf } from "../rules/time.ts";
import { type AccountRecord, accountAs, changeAccount } from "./account-records.ts";
import { SEALED, type SealedKey } from "./sealed-texts.ts";
import { NOW, raw, reader, type Sql, sql } from "./sql.ts";

export const agentReads = {
  /**
   * The agents of an owner that are not erased: first the default ones, then those that the owner
   * created, both ordered by username. Accounts of incoming hooks are not agents.
   */
  agents: (db: Sql, ownerId: number) =>
    // Default agents are named after their provider.
    db.allAs(toAgent)`
      ${AGENT} WHERE a.owner_id = ${ownerId} AND a.provider IS NOT NULL AND a.erased_at IS NULL
      ORDER BY (a.username <> owner.username || ':' || a.provider), a.username COLLATE "C"`,
  /** The agent with that account, also an erased one. Null when the account has no owner. */
  agent: (db: Sql, accountId: number) => db.getAs(toAgent)`${AGENT} WHERE a.id = ${accountId}`,
  /** The agents of a conversation that are not erased, in the order in which they joined. */
  conversationAgents: (db: Sql, conversationId: number) =>
    db.allAs(readConversationAgent)`
      SELECT ${accountAs("account")}, m.always_on,
        coalesce(g.spenders, ${DEFAULT_LIMITS.spenders}) AS spenders,
        coalesce(g.waiting_turns, ${DEFAULT_LIMITS.waiting_turns}) AS waiting_turns,
        o.suspended_at IS NOT NULL AS is_suspended
      FROM members m
      JOIN accounts a ON a.id = m.account_id AND a.kind = 'agent' AND a.erased_at IS NULL
      JOIN accounts o ON o.id = a.owner_id
      LEFT JOIN agents g ON g.account_id = a.id
      WHERE m.conversation_id = ${conversationId} ORDER BY m.position`,
  /** Every sealed key, for the rotation of the key that seals them. */
  sealedKeys: (db: Sql) => db.all<SealedKey>`${raw(SEALED.keys)}`,
  /** The agents among these that were seen within the last `withinMs`. */
  agentsSeen: (db: Sql, accountIds: readonly number[], withinMs: number) =>
    db.column<number>`
      SELECT account_id FROM agent_presence
      WHERE account_id = ANY(${accountIds}::bigint[]) AND seen_at > ${NOW} - ${withinMs}::bigint`,
};

export const agentWrites = {
  /** Inserts or replaces an owner's key for a provider. */
  setAgentKey: (db: Sql, { owner_id, provider, sealed, tail, at }: NewKey) =>
    db.upsert("agent_keys", { owner_id, provider }, { sealed, tail, updated_at: at }),
  /** Replaces a key's sealed form, unless the key was changed since it was read. */
  resealKey: (db: Sql, { owner_id, provider, sealed: from }: SealedKey, sealed: string) =>
    db.update("agent_keys", { owner_id, provider, sealed: from }, { sealed }),
  /** Changes nothing when there is no such key. */
  removeAgentKey: (db: Sql, ownerId: number, provider: string) =>
    db.remove("agent_keys", { owner_id: ownerId, provider }),
  /** Replaces both. Null means the provider's default model, and no instructions. */
  setAgentProfile: (
    db: Sql,
    accountId: number,
    { model, instructions }: { model: string | null; instructions: string | null },
  ) => db.upsert("agents", { account_id: accountId }, { model, instructions }),
  /**
   * Changes the provider. What the agent uses at the operator's expense on the day (UTC) of `at` then
   * counts for every provider, so that a change does not reset the owner's daily limit.
   */
  setAgentProvider: (db: Sql, accountId: number, provider: string, at: number) =>
    changeAccount(db, accountId, { provider, provider_day: dayOf(at) }),
  /** Replaces the limits. An agent whose limits were never set has the default ones. */
  setAgentLimits: (db: Sql, accountId: number, limits: AgentLimits) =>
    db.upsert("agents", { account_id: accountId }, { ...limits, limits_set: true }),
  /** Changes nothing when the agent is not a member of the conversation. */
  async setAlwaysOn(db: Sql, conversationId: number, accountId: number, alwaysOn: boolean) {
    db.changes(conversationId);
    const member = { conversation_id: conversationId, account_id: accountId };
    await db.update("members", member, { always_on: alwaysOn });
  },
  /** Records that the agents are seen now. Ignores accounts that do not exist. */
  async noteAgentsSeen(db: Sql, accountIds: readonly number[]): Promise<void> {
    // In the order of ids: two nodes that note the same agents wait for each other in that order.
    await db.change`
      INSERT INTO agent_presence (account_id, seen_at)
      SELECT id, ${NOW} FROM accounts WHERE id = ANY(${accountIds}::bigint[]) ORDER BY id
      ON CONFLICT (account_id) DO UPDATE SET seen_at = excluded.seen_at`;
  },
};

export interface AgentRecord {
  readonly account: AccountRecord;
  readonly owner: AccountRecord;
  readonly model: string | null;
  readonly instructions: string | null;
  readonly limits: AgentLimits;
  readonly sealed_key: string | null;
  readonly key_tail: string | null;
}

/** An agent as a member of a conversation, with the limits that decide whether it answers. */
export interface ConversationAgent {
  readonly account: AccountRecord;
  readonly always_on: boolean;
  readonly spenders: AgentLimits["spenders"];
  readonly waiting_turns: number;
  /** Whether its owner's account is suspended. */
  readonly is_suspended: boolean;
}

export interface NewKey extends SealedKey {
  readonly tail: string;
  readonly at: number;
}

const LIMITS = [
  "spenders",
  "daily_tokens",
  "chat_daily_tokens",
  "turns_per_minute",
  "waiting_turns",
];

/** Selects agents with their owner, profile, limits and key. */
const AGENT = sql`SELECT ${accountAs("account")}, ${accountAs("owner", "owner")}, g.model, g.instructions,
    g.limits_set, ${raw(LIMITS.map((limit) => `g.${limit} AS "limits.${limit}"`).join(", "))},
    k.sealed AS sealed_key, k.tail AS key_tail
  FROM accounts a
  JOIN accounts owner ON owner.id = a.owner_id
  LEFT JOIN agents g ON g.account_id = a.id
  LEFT JOIN agent_keys k ON k.owner_id = a.owner_id AND k.provider = a.provider`;

/** `limits_set` is false for an agent without settings: the default limits apply. */
const readAgent = reader<AgentRecord & { limits_set: boolean }>({ flags: ["limits_set"] });

const toAgent = (row: object): AgentRecord => {
  const { limits_set, ...agent } = readAgent(row);
  return limits_set ? agent : { ...agent, limits: DEFAULT_LIMITS };
};

const readConversationAgent = reader<ConversationAgent>({ flags: ["always_on", "is_suspended"] });
