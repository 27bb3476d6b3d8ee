import type { Crew } from "./crew.ts";
import type { Operation } from "./history.ts";
import { type Action, actions, Mind } from "./mind.ts";

export interface LoadOptions {
  /** How long each client rests between two operations, on average. */
  pauseMs: number;
  without?: readonly Action[];
}

export interface Load {
  /** How many operations have been answered so far. */
  acknowledged(): number;
  /** Ends when everything that was begun has come to an end; gives what did not arrive. */
  stop(): Promise<Operation[]>;
}

/** How long what was written may take to arrive once nothing is in its way. */
const ARRIVAL_MS = 20_000;

/** Has everybody do what people do, at random, until it is stopped. */
export function startLoad(crew: Crew, { pauseMs, without = [] }: LoadOptions): Load {
  const left = Object.entries(actions).filter(([name]) => !without.includes(name as Action));
  const weights = Object.fromEntries(left) as Record<Action, number>;
  const { history } = crew;
  const giveUp = new AbortController();
  const written: Promise<Operation>[] = [];
  let stopped = false;

  const loops = crew.members.map(async (member) => {
    const mind = new Mind(crew, member, giveUp.signal, written);
    while (!stopped) {
      await mind.act(member.chances.weighted(weights));
      await Bun.sleep(member.chances.between(0, 2 * pauseMs));
    }
  });

  return {
    acknowledged: () => history.operations.filter(({ outcome }) => outcome === "ok").length,
    async stop() {
      stopped = true;
      await Promise.all(loops);
      const timer = setTimeout(() => giveUp.abort(), ARRIVAL_MS);
      const all = await Promise.all(written);
      clearTimeout(timer);
      return all.filter(({ outcome }) => outcome !== "ok");
    },
  };
}
