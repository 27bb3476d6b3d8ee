import type { AccountRecord } from "../../rules/accounts.ts";
import { isExternal } from "../../rules/agents.ts";
import type { Store } from "../../store/store.ts";

/** An account that has sockets on this node: the same object while it has any. */
export interface ConnectedAccount {
  readonly account: AccountRecord;
}

export interface ConnectedAccounts {
  person(username: string): ConnectedAccount | undefined;
  people(): Iterable<ConnectedAccount>;
}

/** How old the stored time of an agent becomes before it is written again. */
const REFRESH_MS = 3000;

/** Stores which external agents have a program that is connected to this node, or calls it. */
export function createPresence(store: Store, connected: Pick<ConnectedAccounts, "people">) {
  /** Agents that made calls since the last flush. */
  const called = new Set<number>();
  const storedAt = new Map<number, number>();

  function* connectedAgents(): Generator<number> {
    for (const { account } of connected.people()) if (isExternal(account)) yield account.id;
  }

  return {
    seen: (agentId: number) => void called.add(agentId),
    /** Writes all agents that are due in one unit. `polling`: those whose programs wait for turns. */
    async flush(polling: Iterable<number>): Promise<void> {
      const now = performance.now();
      for (const [id, at] of storedAt) if (now - at >= REFRESH_MS) storedAt.delete(id);
      const present = new Set([...called, ...polling, ...connectedAgents()]);
      const due = [...present].filter((id) => !storedAt.has(id));
      if (due.length === 0) return;
      await store.note((tx) => tx.noteAgentsSeen(due));
      for (const id of due) {
        called.delete(id);
        storedAt.set(id, now);
      }
    },
  };
}
