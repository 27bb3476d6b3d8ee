import { ownerNameOf } from "../../rules/agents.ts";
import { rateLimited } from "../../rules/failure.ts";
import type { AgentCaller } from "../../security/caller.ts";

/** Calls that the agents of one person may have waiting on this node: each keeps a connection open. */
const MAX_WAITING = 64;

/** A `claimTurn` that waits for a turn. */
export interface WaitingClaim {
  /** Resolves to true when there may be a turn, and to false when the wait is over. */
  wait(ms: number): Promise<boolean>;
  [Symbol.dispose](): void;
}

interface Entry {
  readonly caller: AgentCaller;
  /** Null: nothing has happened yet. */
  outcome: boolean | null;
  settle(outcome: boolean): void;
}

/** The programs that wait for turns on this node. They wait in memory alone. */
export class WaitingClaims {
  /** By the username of the owner. */
  readonly #entries = new Map<string, Set<Entry>>();

  /**
   * Begins to listen for turns of the agent. Throws `rate_limited` if too many calls of its owner's
   * agents wait already.
   */
  open(caller: AgentCaller, signal: AbortSignal): WaitingClaim {
    const owner = ownerNameOf(caller.account);
    const entries = this.#entries.get(owner) ?? new Set<Entry>();
    if (entries.size >= MAX_WAITING) throw rateLimited(1, "too many calls wait for turns");
    const entry: Entry = {
      caller,
      outcome: null,
      settle: (outcome) => {
        entry.outcome = outcome;
      },
    };
    this.#entries.set(owner, entries.add(entry));
    const abort = () => entry.settle(false);
    signal.addEventListener("abort", abort);
    return {
      wait: (ms) => settled(entry, ms),
      [Symbol.dispose]: () => {
        signal.removeEventListener("abort", abort);
        entries.delete(entry);
        if (entries.size === 0) this.#entries.delete(owner);
      },
    };
  }

  /** Turns of the agent may wait. */
  wake(username: string): void {
    for (const entry of this.#entries.get(ownerNameOf({ username })) ?? []) {
      if (entry.caller.account.username === username) entry.settle(true);
    }
  }

  /** Ends the calls that these callers make. */
  end(isOver: (caller: AgentCaller) => boolean): void {
    for (const entry of this.#all()) if (isOver(entry.caller)) entry.settle(false);
  }

  /** The ids of the agents whose programs wait. */
  *agents(): Generator<number> {
    for (const { caller } of this.#all()) yield caller.account.id;
  }

  *#all(): Generator<Entry> {
    for (const entries of this.#entries.values()) yield* entries;
  }
}

function settled(entry: Entry, ms: number): Promise<boolean> {
  if (entry.outcome !== null) return Promise.resolve(entry.outcome);
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), ms);
    entry.settle = (outcome) => {
      clearTimeout(timer);
      resolve(outcome);
    };
  });
}
