import type { UsageRow } from "@parley/protocol";
import type { AccountRecord } from "../accounts.ts";
import type { AgentSeat, SealedKey } from "../agents.ts";
import { ACCOUNT, AGENT, type AgentRow, dayOf, SEAT_LIMITS, toAgent } from "../rows.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Connection } from "./connection.ts";

type Reads = Pick<
  ReadTx,
  "agents" | "agent" | "conversationAgents" | "sealedKeys" | "spending" | "usage"
>;
type Writes = Pick<
  WriteTx,
  | "setAgentKey"
  | "resealKey"
  | "removeAgentKey"
  | "setAgentProfile"
  | "setAgentLimits"
  | "setAlwaysOn"
>;

type SeatRow = AccountRecord & { always_on: number } & Pick<
    AgentSeat,
    "spenders" | "waiting_turns"
  >;

export function agentReads(db: Connection): Reads {
  const byOwner = db.query<AgentRow>(`${AGENT} WHERE a.owner_id = ? ORDER BY a.provider`);
  const byId = db.query<AgentRow>(`${AGENT} WHERE a.id = ?`);
  const seats = db.query<SeatRow>(
    `SELECT ${ACCOUNT}, m.always_on, ${SEAT_LIMITS}
     FROM members m JOIN accounts a ON a.id = m.account_id AND a.kind = 'agent'
     LEFT JOIN agents g ON g.account_id = a.id
     WHERE m.conversation_id = ? ORDER BY m.position`,
  );
  const keys = db.query<SealedKey>("SELECT owner_id, provider, sealed FROM agent_keys");
  const today = db.query<{ conversation_id: number; used: number }>(
    `SELECT conversation_id, input_tokens + output_tokens + reserved AS used
     FROM agent_usage WHERE agent_id = ? AND day = ?`,
  );
  // Turns that were refused, or have not come so far, called nobody.
  const recent = db.query<{ count: number }>(
    `SELECT count(*) AS count FROM turns
     WHERE agent_id = ? AND started_at > ? AND estimated_input > 0`,
  );
  const usage = db.query<UsageRow>(
    `SELECT a.username AS agent, c.uuid AS conversation_id, u.day, u.turns, u.failures,
            u.input_tokens, u.output_tokens
     FROM accounts a JOIN agent_usage u ON u.agent_id = a.id
     JOIN conversations c ON c.id = u.conversation_id
     WHERE a.owner_id = ?1 AND (?2 IS NULL OR u.day >= ?2) AND (?3 IS NULL OR u.day <= ?3)
       AND u.turns > 0
     ORDER BY u.day, a.username, c.id`,
  );

  return {
    agents: (ownerId) => byOwner.all(ownerId).map(toAgent),
    agent: (accountId) => {
      const row = byId.get(accountId);
      return row && toAgent(row);
    },
    conversationAgents: (conversationId) =>
      seats.all(conversationId).map(({ always_on, spenders, waiting_turns, ...account }) => ({
        account,
        always_on: always_on === 1,
        spenders,
        waiting_turns,
      })),
    sealedKeys: () => keys.all(),
    spending: (agentId, conversationId, now) => {
      const rows = today.all(agentId, dayOf(now));
      return {
        today: rows.reduce((sum, { used }) => sum + used, 0),
        todayHere: rows.find((row) => row.conversation_id === conversationId)?.used ?? 0,
        turnsInMinute: recent.get(agentId, now - 60_000)?.count ?? 0,
      };
    },
    usage: (ownerId, since, until) =>
      usage.all(
        ownerId,
        since === null ? null : dayOf(since),
        until === null ? null : dayOf(until),
      ),
  };
}

export function agentWrites(db: Connection): Writes {
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
