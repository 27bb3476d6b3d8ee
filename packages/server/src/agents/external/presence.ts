import type { Hub } from "../../realtime/hub.ts";
import { isExternal } from "../../rules/agents.ts";
import type { Store } from "../../store/store.ts";

/** How old the stored time of an agent becomes before it is written again. */
const REFRESH_MS = 3000;

/** Stores which external agents have a program that is connected to this node, or calls it. */
export class Presence {
  readonly #store: Store;
  readonly #hub: Pick<Hub, "people">;
  /** Agents that made calls since the last flush. */
  readonly #called = new Set<number>();
  readonly #storedAt = new Map<number, number>();

  constructor(store: Store, hub: Pick<Hub, "people">) {
    this.#store = store;
    this.#hub = hub;
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
    const present = new Set([...this.#called, ...polling, ...this.#connected()]);
    const due = [...present].filter((id) => !this.#storedAt.has(id));
    if (due.length === 0) return;
    await this.#store.note((tx) => tx.noteAgentsSeen(due));
    for (const id of due) {
      this.#called.delete(id);
      this.#storedAt.set(id, now);
    }
  }

  *#connected(): Generator<number> {
    for (const { account } of this.#hub.people()) if (isExternal(account)) yield account.id;
  }
}
