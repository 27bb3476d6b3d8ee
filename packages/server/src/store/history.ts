import { firstValue, type Sql } from "./sql.ts";

/**
 * A restore from a backup takes data back that clients have seen. The id of the history changes then,
 * so that clients can tell and start over.
 */
export const historyReads = {
  async historyId(db: Sql): Promise<string> {
    return (await firstValue<string>(db, "SELECT id FROM history")) ?? "";
  },
};

export const historyWrites = {
  /** Gives the history a new id, for restores that the store cannot detect. */
  async renewHistory(db: Sql): Promise<void> {
    await db.change("UPDATE history SET id = $1", [Bun.randomUUIDv7()]);
  },
};
