import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { FileStorage } from "../config/file-storage.ts";
import { ConfigError } from "../config/setting.ts";
import { FIRST_FILE } from "../store/files.ts";
import type { Store } from "../store/store.ts";

/** Whether a folder is missing, or empty as a mount point or a new disk is. */
export const isEmpty = (folder: string): boolean =>
  !existsSync(folder) ||
  (statSync(folder).isDirectory() && readdirSync(folder).every((name) => name === "lost+found"));

/**
 * Throws if the folder of files is empty and the store has files: its disk is probably not mounted, and
 * new files would be written beneath the mount point.
 */
export async function refuseUnmounted(storage: FileStorage, store: Pick<Store, "read">) {
  if (storage.kind !== "disk" || !isEmpty(storage.folder)) return;
  if ((await store.read((tx) => tx.storedFiles(FIRST_FILE, 1))).length === 0) return;
  const { folder } = storage;
  throw new ConfigError(
    `PARLEY_FILES names ${folder}, which is empty or missing, although people have sent files: mount its disk, or create the folder ${join(folder, "incoming")} to start without these files.`,
  );
}
