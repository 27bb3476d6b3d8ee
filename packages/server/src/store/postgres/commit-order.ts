/** Transactions that are being committed, by the rows that they lock. */
export interface CommitOrder {
  /** Takes a place after all transactions that lock one of these keys. Called before COMMIT is sent. */
  enter(keys: ReadonlySet<string>): { earlierLeft: Promise<unknown>; leave(): void };
}

/**
 * Transactions that lock the same row publish their changes in the order in which they locked it.
 * PostgreSQL releases the locks of a transaction before it acknowledges the COMMIT, so the next
 * transaction that locks the row, on another connection, may be acknowledged first.
 */
export function commitOrder(): CommitOrder {
  const last = new Map<string, Promise<void>>();
  return {
    enter(keys) {
      const earlier = [...keys].map((key) => last.get(key));
      const { promise: left, resolve } = Promise.withResolvers<void>();
      for (const key of keys) last.set(key, left);
      return {
        earlierLeft: Promise.all(earlier),
        leave: () => {
          for (const key of keys) if (last.get(key) === left) last.delete(key);
          resolve();
        },
      };
    },
  };
}
