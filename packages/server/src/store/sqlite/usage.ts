import type { UsageRow } from "@parley/protocol";
import { dayOf } from "../../rules/time.ts";
import {
  daysOf,
  type SpentRow,
  TURN_WINDOW_MS,
  toSpending,
  USAGE_COLUMNS,
  type UsageDelta,
  usageValues,
} from "../shared/usage.ts";
import type { UsageReads } from "../usage.ts";
import type { Connection } from "./connection.ts";

export function usageReads(db: Connection): UsageReads {
  const spent = db.query<SpentRow>(
    `SELECT conversation_id, input_tokens + output_tokens + reserved AS used
     FROM agent_usage WHERE agent_id = ? AND day = ?`,
  );
  // Turns without an estimate have not called the provider (yet).
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
  const operatorSpent = db.query<{ used: number }>(
    `SELECT coalesce(sum(u.operator_tokens), 0) AS used FROM accounts a
     JOIN agent_usage u ON u.agent_id = a.id AND u.day = ?3
     WHERE a.owner_id = ?1 AND (a.provider = ?2 OR a.provider_day = ?3)`,
  );
  return {
    operatorSpending: (ownerId, provider, now) =>
      operatorSpent.get(ownerId, provider, dayOf(now))?.used ?? 0,
    spending: (agentId, conversationId, now) =>
      toSpending(
        spent.all(agentId, dayOf(now)),
        conversationId,
        recent.get(agentId, now - TURN_WINDOW_MS)?.count ?? 0,
      ),
    usage: (ownerId, since, until) => {
      const { first, last } = daysOf(since, until);
      return usage.all(ownerId, first, last);
    },
  };
}

export function addUsage(db: Connection) {
  const add = db.change(
    `INSERT INTO agent_usage (${USAGE_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
     ON CONFLICT (agent_id, day, conversation_id) DO UPDATE SET turns = turns + ?4,
       failures = failures + ?5, input_tokens = input_tokens + ?6,
       output_tokens = output_tokens + ?7, reserved = reserved + ?8,
       operator_tokens = operator_tokens + ?9`,
  );
  return (delta: UsageDelta): void => void add.run(...usageValues(delta));
}
