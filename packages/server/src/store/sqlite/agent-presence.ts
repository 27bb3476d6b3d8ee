import type { AgentPresenceReads, AgentPresenceWrites } from "../agent-presence.ts";
import type { Connection } from "./connection.ts";

export function agentPresenceReads(db: Connection): AgentPresenceReads {
  const seen = db.query<{ account_id: number }>(
    "SELECT account_id FROM agent_presence WHERE account_id = ? AND seen_at > ?",
  );
  return {
    agentsSeen: (accountIds, withinMs) =>
      accountIds.filter((id) => seen.get(id, Date.now() - withinMs) !== null),
  };
}

export function agentPresenceWrites(db: Connection): AgentPresenceWrites {
  const note = db.change(
    `INSERT INTO agent_presence (account_id, seen_at) SELECT id, ?2 FROM accounts WHERE id = ?1
     ON CONFLICT (account_id) DO UPDATE SET seen_at = excluded.seen_at`,
  );
  return {
    noteAgentsSeen: (accountIds) => {
      for (const id of accountIds) note.run(id, Date.now());
    },
  };
}
