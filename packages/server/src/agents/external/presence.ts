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
export class Presence {
  readonly #store: Store;
  readonly #connected: Pick<ConnectedAccounts, "people">;
  /** Agents that made calls since the last flush. */
  readonly #called = new Set<number>();
  readonly #storedAt = new Map<number, number>();

  constructor(store: Store, connected: Pick<ConnectedAccounts, "people">) {
    this.#store = store;
    this.#connected = connected;
  }

  seen(agentId: number): void {
    this.#called.add(agentId);
  }

  /** Writes all agents that are due in one unit. `polling`: those whose programs wait for turns. */
  async flush(polling: Iterable<number>): Promise<void> {
    const now = performance.now();
    for (const [id, at] of this.#storedAt) {
      if (now - at >= REFRESH_MS) this.#storedAt.delete(id);
    }
    const present = new Set([...this.#called, ...polling, ...this.#connectedAgents()]);
    const due = [...present].filter((id) => !this.#storedAt.has(id));
    if (due.length === 0) return;
    await this.#store.note((tx) => tx.noteAgentsSeen(due));
    for (const id of due) {
      this.#called.delete(id);
      this.#storedAt.set(id, now);
    }
  }

  *#connectedAgents(): Generator<number> {
    for (const { account } of this.#connected.people()) if (isExternal(account)) yield account.id;
  }
}
