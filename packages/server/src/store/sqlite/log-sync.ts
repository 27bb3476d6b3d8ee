import { closeSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";

/** What the thread answers: null, or why the sync failed. */
export type SyncReply = string | null;

/**
 * Starts a thread that syncs the write-ahead log. On the runtime's thread pool, which has few threads,
 * every send would wait for files that are written there, and for passwords and pictures.
 */
export function startLogSync(path: string) {
  const log = openSync(`${path}-wal`, "r");
  // Syncs the folder too: otherwise a power cut could lose the entry of the new file in it.
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
  const worker = new Worker(new URL("./log-sync-worker.ts", import.meta.url).href, {
    argv: [`${log}`],
  });
  let syncing = Promise.withResolvers<void>();
  let broken: Error | null = null;
  worker.addEventListener("message", ({ data }: MessageEvent<SyncReply>) => {
    if (data === null) syncing.resolve();
    else syncing.reject(new Error(data));
  });
  worker.addEventListener("error", ({ message }) => {
    broken = new Error(`the thread that syncs the log failed: ${message}`);
    syncing.reject(broken);
  });
  // The thread may fail before the first sync waits for it.
  syncing.promise.catch(() => {});
  return {
    /** Syncs the write-ahead log, which contains every commit. One sync at a time. */
    sync: (): Promise<void> => {
      if (broken) return Promise.reject(broken);
      syncing = Promise.withResolvers();
      worker.postMessage(null);
      return syncing.promise;
    },
    close: () => {
      worker.terminate();
      closeSync(log);
    },
  };
}
