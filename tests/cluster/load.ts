import type { Operation } from "./history.ts";
import { type Action, actions, UserActions } from "./user-actions.ts";
import type { TestUsers } from "./users.ts";

export interface LoadOptions {
  /** Average pause of a client between two operations. */
  pauseMs: number;
  without?: readonly Action[];
}

export interface Load {
  /** The number of acknowledged operations. */
  acknowledged(): number;
  /** Waits for the operations in progress. Returns the outbox messages that were not delivered. */
  stop(): Promise<Operation[]>;
}

/** How long the outboxes may take to deliver their messages once all faults are repaired. */
const DELIVERY_MS = 60_000;

/** Has every user perform random actions until it is stopped. */
export function startLoad(users: TestUsers, { pauseMs, without = [] }: LoadOptions): Load {
  const left = Object.entries(actions).filter(([name]) => !without.includes(name as Action));
  const weights = Object.fromEntries(left) as Record<Action, number>;
  const { history } = users;
  const giveUp = new AbortController();
  const written: Promise<Operation>[] = [];
  let stopped = false;

  const loops = users.members.map(async (member) => {
    const actor = new UserActions(users, member, giveUp.signal, written);
    while (!stopped) {
      await actor.perform(member.random.weighted(weights));
      await Bun.sleep(member.random.between(0, 2 * pauseMs));
    }
  });

  return {
    acknowledged: () => history.operations.filter(({ outcome }) => outcome === "ok").length,
    async stop() {
      stopped = true;
      await Promise.all(loops);
      const timer = setTimeout(() => giveUp.abort(), DELIVERY_MS);
      const all = await Promise.all(written);
      clearTimeout(timer);
      return all.filter(({ outcome }) => outcome !== "ok");
    },
  };
}
