import type { SearchHit, SearchQuery, Worked } from "./search.ts";
import { Unavailable } from "./store.ts";

/** A search that takes longer fails with `unavailable`. */
export const SEARCH_DEADLINE_MS = 3000;
/** Number of searches that run at once. */
export const SEARCH_SLOTS = 2;

interface Job extends PromiseWithResolvers<SearchHit[]> {
  readonly query: SearchQuery;
  readonly worked: Worked;
}

/**
 * Runs searches in `SEARCH_SLOTS` slots, at most one for each viewer, so that nobody occupies all of
 * them. A search that still waits or runs at its deadline fails; a running one keeps its slot until it
 * ends.
 */
export function searchQueue(
  run: (query: SearchQuery, slot: number, worked: Worked) => Promise<SearchHit[]>,
): (query: SearchQuery, worked?: Worked) => Promise<SearchHit[]> {
  const free = Array.from({ length: SEARCH_SLOTS }, (_, slot) => slot);
  const viewers = new Set<number>();
  const waiting: Job[] = [];

  function startNext(): void {
    const slot = free[0];
    const next = waiting.findIndex(({ query }) => !viewers.has(query.viewerId));
    const job = waiting[next];
    if (slot === undefined || job === undefined) return;
    free.shift();
    waiting.splice(next, 1);
    void occupy(slot, job);
    startNext();
  }

  async function occupy(slot: number, { query, worked, resolve, reject }: Job): Promise<void> {
    viewers.add(query.viewerId);
    await run(query, slot, worked).then(resolve, reject);
    viewers.delete(query.viewerId);
    free.unshift(slot);
    startNext();
  }

  return (query, worked = () => {}) => {
    const job = { query, worked, ...Promise.withResolvers<SearchHit[]>() };
    const timer = setTimeout(() => {
      const index = waiting.indexOf(job);
      if (index >= 0) waiting.splice(index, 1);
      job.reject(new Unavailable("the search took too long"));
    }, SEARCH_DEADLINE_MS);
    waiting.push(job);
    startNext();
    return job.promise.finally(() => clearTimeout(timer));
  };
}
