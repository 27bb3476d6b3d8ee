import type { UsageRow } from "@parley/protocol";
import type { AccountRecord } from "../accounts.ts";
import type { AgentSeat, SealedKey } from "../agents.ts";
import { ACCOUNT, AGENT, type AgentRow, dayOf, SEAT_LIMITS, toAgent } from "../rows.ts";
import type { Methods } from "./unit.ts";

type SeatRow = AccountRecord & Omit<AgentSeat, "account">;

export const agentReads: Methods<
  "agents" | "agent" | "conversationAgents" | "sealedKeys" | "spending" | "usage"
> = {
  agents: async (unit, ownerId) => {
    const rows = await unit.all<AgentRow>(
      `${AGENT} WHERE a.owner_id = $1 ORDER BY a.provider COLLATE "C"`,
      ownerId,
    );
    return rows.map(toAgent);
  },
  agent: async (unit, accountId) => {
    const row = await unit.get<AgentRow>(`${AGENT} WHERE a.id = $1`, accountId);
    return row && toAgent(row);
  },
  conversationAgents: async (unit, conversationId) => {
    const rows = await unit.all<SeatRow>(
      `SELECT ${ACCOUNT}, m.always_on, ${SEAT_LIMITS}
       FROM members m JOIN accounts a ON a.id = m.account_id AND a.kind = 'agent'
       LEFT JOIN agents g ON g.account_id = a.id
       WHERE m.conversation_id = $1 ORDER BY m.position`,
      conversationId,
    );
    return rows.map(({ always_on, spenders, waiting_turns, ...account }) => ({
      account,
      always_on,
      spenders,
      waiting_turns,
    }));
  },
  sealedKeys: (unit) => unit.all<SealedKey>("SELECT owner_id, provider, sealed FROM agent_keys"),
  spending: async (unit, agentId, conversationId, now) => {
    // Whoever spends next, on whichever node, sees what this unit is about to reserve.
    await unit.ownRow("accounts", agentId);
    const [rows, recent] = await Promise.all([
      unit.all<{ conversation_id: number; used: number }>(
        `SELECT conversation_id, input_tokens + output_tokens + reserved AS used
         FROM agent_usage WHERE agent_id = $1 AND day = $2`,
        agentId,
        dayOf(now),
      ),
      // Turns that were refused, or have not come so far, called nobody.
      unit.get<{ count: number }>(
        `SELECT count(*) AS count FROM turns
         WHERE agent_id = $1 AND started_at > $2 AND estimated_input > 0`,
        agentId,
        now - 60_000,
      ),
    ]);
    return {
      today: rows.reduce((sum, { used }) => sum + used, 0),
      todayHere: rows.find((row) => row.conversation_id === conversationId)?.used ?? 0,
      turnsInMinute: recent?.count ?? 0,
    };
  },
  usage: (unit, ownerId, since, until) =>
    unit.all<UsageRow>(
      `SELECT a.username AS agent, c.uuid AS conversation_id, u.day, u.turns, u.failures,
              u.input_tokens, u.output_tokens
       FROM accounts a JOIN agent_usage u ON u.agent_id = a.id
       JOIN conversations c ON c.id = u.conversation_id
       WHERE a.owner_id = $1 AND ($2::text IS NULL OR u.day >= $2)
         AND ($3::text IS NULL OR u.day <= $3) AND u.turns > 0
       ORDER BY u.day, a.username, c.id`,
      ownerId,
      since === null ? null : dayOf(since),
      until === null ? null : dayOf(until),
    ),
};

export const agentWrites: Methods<
  | "setAgentKey"
  | "resealKey"
  | "removeAgentKey"
  | "setAgentProfile"
  | "setAgentLimits"
  | "setAlwaysOn"
> = {
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
