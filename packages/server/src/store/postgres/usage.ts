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
import type { Methods, Unit } from "./unit.ts";

export const usageReads: Methods<keyof UsageReads> = {
  operatorSpending: async (unit, ownerId, provider, now) => {
    // The next unit that spends for any agent of the owner, on any node, sees what this one reserves.
    await unit.ownRow("accounts", ownerId);
    const row = await unit.get<{ used: number }>(
      `SELECT coalesce(sum(u.operator_tokens), 0)::bigint AS used FROM accounts a
       JOIN agent_usage u ON u.agent_id = a.id AND u.day = $3
       WHERE a.owner_id = $1 AND (a.provider = $2 OR a.provider_day = $3)`,
      ownerId,
      provider,
      dayOf(now),
    );
    return row?.used ?? 0;
  },
  spending: async (unit, agentId, conversationId, now) => {
    // The next unit that spends for the agent, on any node, sees what this one reserves.
    await unit.ownRow("accounts", agentId);
    const [spent, recent] = await Promise.all([
      unit.all<SpentRow>(
        `SELECT conversation_id, input_tokens + output_tokens + reserved AS used
         FROM agent_usage WHERE agent_id = $1 AND day = $2`,
        agentId,
        dayOf(now),
      ),
      // Turns without an estimate have not called the provider (yet).
      unit.get<{ count: number }>(
        `SELECT count(*) AS count FROM turns
         WHERE agent_id = $1 AND started_at > $2 AND estimated_input > 0`,
        agentId,
        now - TURN_WINDOW_MS,
      ),
    ]);
    return toSpending(spent, conversationId, recent?.count ?? 0);
  },
  usage: (unit, ownerId, since, until) => {
    const { first, last } = daysOf(since, until);
    return unit.all<UsageRow>(
      `SELECT a.username AS agent, c.uuid AS conversation_id, u.day, u.turns, u.failures,
              u.input_tokens, u.output_tokens
       FROM accounts a JOIN agent_usage u ON u.agent_id = a.id
       JOIN conversations c ON c.id = u.conversation_id
       WHERE a.owner_id = $1 AND ($2::text IS NULL OR u.day >= $2)
         AND ($3::text IS NULL OR u.day <= $3) AND u.turns > 0
       ORDER BY u.day, a.username, c.id`,
      ownerId,
      first,
      last,
    );
  },
};

export async function addUsage(unit: Unit, delta: UsageDelta): Promise<void> {
  await unit.change(
    `INSERT INTO agent_usage AS u (${USAGE_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     ON CONFLICT (agent_id, day, conversation_id) DO UPDATE SET turns = u.turns + $4,
       failures = u.failures + $5, input_tokens = u.input_tokens + $6,
       output_tokens = u.output_tokens + $7, reserved = u.reserved + $8,
       operator_tokens = u.operator_tokens + $9`,
    ...usageValues(delta),
  );
}
