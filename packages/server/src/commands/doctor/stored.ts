import { resolve } from "node:path";
import type { Config } from "../../config/config.ts";
import { diagnosePostgres } from "../../store/postgres/diagnosis.ts";
import type { SealedTexts } from "../../store/sealed-texts.ts";
import { diagnoseSqlite } from "../../store/sqlite/diagnosis.ts";

/** What other checks need to know of the store. Null if it cannot be read: its own check says why. */
export async function readStored({
  database,
  dataDir,
}: Config): Promise<{ hasFiles: boolean; sealed: SealedTexts } | null> {
  try {
    return database
      ? await diagnosePostgres(database)
      : diagnoseSqlite(resolve(dataDir, "parley.db"), false);
  } catch {
    // The check of the store says why.
    return null;
  }
}
