import type { AgentPresenceReads, AgentPresenceWrites } from "../agent-presence.ts";
import { list, type Methods, NOW } from "./unit.ts";

export const agentPresenceReads: Methods<keyof AgentPresenceReads> = {
  agentsSeen: async (unit, accountIds, withinMs) => {
    const rows = await unit.all<{ account_id: number }>(
      `SELECT account_id FROM agent_presence
       WHERE account_id = ANY($1::bigint[]) AND seen_at > ${NOW} - $2::bigint`,
      list(accountIds),
      withinMs,
    );
    return rows.map(({ account_id }) => account_id);
  },
};

export const agentPresenceWrites: Methods<keyof AgentPresenceWrites> = {
  noteAgentsSeen: async (unit, accountIds) => {
    // In the order of ids: two nodes that note the same agents wait for each other in that order.
    await unit.write(
      `INSERT INTO agent_presence (account_id, seen_at)
       SELECT id, ${NOW} FROM accounts WHERE id = ANY($1::bigint[]) ORDER BY id
       ON CONFLICT (account_id) DO UPDATE SET seen_at = excluded.seen_at`,
      list(accountIds),
    );
  },
};
