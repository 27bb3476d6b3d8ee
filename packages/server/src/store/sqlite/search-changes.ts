import type { Port } from "./sql.ts";

/** Number of indexed rows from which on pruning is worth a write. */
const PRUNED_FROM = 1000;
/** Rows that one call deletes at most, so that it does not hold up other writes. */
const PRUNED_AT_ONCE = 10_000;

const OLDEST = "SELECT min(id) AS id FROM search_changes";
const PRUNE = `DELETE FROM search_changes WHERE id < min($1, (${OLDEST}) + ${PRUNED_AT_ONCE})`;

/** Whether enough rows of `search_changes` are indexed that they are worth pruning. */
export const isPruningDue = (db: Port, lastIndexed: number): boolean =>
  lastIndexed - (db.get<{ id: number | null }>(OLDEST)?.id ?? lastIndexed) >= PRUNED_FROM;

/**
 * Deletes rows of `search_changes` before the last one that is indexed. That one stays, so that ids
 * are not used again and the index can tell whether it has them all.
 */
export const pruneSearchChanges = (db: Port, lastIndexed: number): void =>
  void db.change(PRUNE, [lastIndexed]);
