import { ownerNameOf } from "../../rules/agents.ts";
import { rateLimited } from "../../rules/failure.ts";
import type { AgentCaller } from "../../security/caller.ts";

/** Calls that the agents of one person may have waiting on this node: each keeps a connection open. */
const MAX_WAITING = 64;

interface Entry {
  readonly caller: AgentCaller;
  settle(isWoken: boolean): void;
}

/** The programs that wait for turns on this node. They wait in memory alone. */
export class WaitingClaims {
  /** By the username of the owner. */
  readonly #entries = new Map<string, Set<Entry>>();

  /** Begins to listen for turns. Throws `rate_limited` if too many calls of the owner's agents wait. */
  open(caller: AgentCaller, signal: AbortSignal) {
    const owner = ownerNameOf(caller.account);
    const entries = this.#entries.get(owner) ?? new Set<Entry>();
    if (entries.size >= MAX_WAITING) throw rateLimited(1, "too many calls wait for turns");
    const { promise: settled, resolve } = Promise.withResolvers<void>();
    let outcome = false;
    let hasEnded = false;
    const settle = (isWoken: boolean) => {
      // A turn that is queued at the same moment does not wake a call that was ended.
      hasEnded ||= !isWoken;
      outcome = !hasEnded;
      resolve();
    };
    const entry: Entry = { caller, settle };
    this.#entries.set(owner, entries.add(entry));
    const abort = () => settle(false);
    signal.addEventListener("abort", abort);
    return {
      /** Resolves to true when there may be a turn, and to false when the wait is over. */
      wait: async (ms: number): Promise<boolean> => {
        const timer = setTimeout(resolve, ms);
        await settled;
        clearTimeout(timer);
        return outcome;
      },
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
