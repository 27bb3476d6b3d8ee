import type { Connection } from "./connection.ts";

/** Number of indexed rows from which on pruning is worth a write. */
const PRUNED_FROM = 1000;
/** Rows that one call deletes at most, so that it does not hold up other writes. */
const PRUNED_AT_ONCE = 10_000;

/**
 * Deletes rows of `search_changes` before the last one that is indexed. That one stays, so that ids
 * are not used again and the index can tell whether it has them all.
 */
export function searchChangePruning(reader: Connection, writer: Connection) {
  const OLDEST = "SELECT min(id) AS id FROM search_changes";
  const oldest = reader.query<{ id: number | null }>(OLDEST);
  const prune = writer.change(
    `DELETE FROM search_changes WHERE id < min(?1, (${OLDEST}) + ${PRUNED_AT_ONCE})`,
  );
  return {
    isDue: (lastIndexed: number): boolean =>
      lastIndexed - (oldest.get()?.id ?? lastIndexed) >= PRUNED_FROM,
    prune: (lastIndexed: number) => void prune.run(lastIndexed),
  };
}
