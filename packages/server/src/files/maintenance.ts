import type { Delivered } from "../changes/bus.ts";
import { backgroundRunner } from "../store/background-work.ts";
import { FIRST_FILE } from "../store/files.ts";
import { createLease, type JobOptions, runRegularly } from "../upkeep/jobs.ts";
import type { Blobs } from "./blobs.ts";
import {
  checkFiles,
  deleteAbandonedBlobs,
  deleteInterruptedUploads,
  deleteUnknownBlobs,
  deleteUnusedFiles,
  type StorageFigures,
} from "./cleanup.ts";

const MINUTE_MS = 60 * 1000;
/** When to look again if another node had the lease: it may be that of a process that was killed. */
const RETRY_MS = 12_000;
const HOUR_MS = 60 * MINUTE_MS;
/** How long an upload waits for a message. */
const UNUSED_MS = 24 * HOUR_MS;
/** An object gets its row at once, or never: this is far longer than the slowest upload takes. */
const UNKNOWN_MS = 6 * HOUR_MS;
/** Files that are being received are written to all the time. */
const INTERRUPTED_MS = 2 * HOUR_MS;

export interface FileMaintenanceOptions extends JobOptions {
  readonly blobs: Blobs;
  /** Whether other nodes may be receiving files into the same folder. */
  readonly isShared: boolean;
}

/**
 * Keeps the rows and the bytes of files consistent, on one node at a time: deletes the bytes of deleted
 * files every minute; every hour uploads that nothing uses and bytes without a row, and looks for rows
 * without bytes.
 */
export function maintainFiles(options: FileMaintenanceOptions) {
  const { store, blobs, node, isShared, log, metrics } = options;
  const background = backgroundRunner("file_deletion", "file_checks");
  const started = Date.now();
  let checkedUpTo = FIRST_FILE;
  let figures: StorageFigures | null = null;
  const watch = (metric: string, figure: keyof StorageFigures, help: string) =>
    metrics.watch(metric, "gauge", help, () => figures?.[figure] ?? []);
  const checked = "in the file storage, previews included, at the last check of this node.";
  watch("parley_file_objects", "objects", `Objects ${checked}`);
  watch("parley_file_bytes", "bytes", "Bytes in the file storage at the last check of this node.");

  const deletion = createLease(store, "file deletion", node);
  let retry: NodeJS.Timeout | undefined;
  async function deleteBytes(signal: AbortSignal): Promise<void> {
    const [first] = await store.read((tx) => tx.abandonedBlobs(1));
    if (first === undefined) return;
    const isDone = await deletion.hold(signal, (proceed) =>
      deleteAbandonedBlobs({ ...options, proceed }),
    );
    if (isDone || signal.aborted) return;
    clearTimeout(retry);
    retry = setTimeout(() => jobs[0].run(), RETRY_MS);
    retry.unref();
  }

  const checks = createLease(store, "file checks", node);
  async function checkAll(signal: AbortSignal): Promise<void> {
    // Without other nodes, only a process that was killed can have left something there.
    const interrupted = isShared ? Date.now() - INTERRUPTED_MS : started;
    await deleteInterruptedUploads(blobs.incoming, interrupted);
    await checks.hold(signal, async (proceed) => {
      const cleanup = { store, blobs, log, proceed };
      await deleteUnusedFiles(cleanup, Date.now() - UNUSED_MS);
      const found = await deleteUnknownBlobs(cleanup, Date.now() - UNKNOWN_MS);
      checkedUpTo = await checkFiles(cleanup, checkedUpTo);
      figures = found;
    });
  }

  const jobs = [
    runRegularly(MINUTE_MS, (signal) => background.run("file_deletion", () => deleteBytes(signal))),
    runRegularly(HOUR_MS, (signal) => background.run("file_checks", () => checkAll(signal))),
  ] as const;
  return {
    background,
    /** Receives changes: the bytes of a deleted message are deleted at once. */
    receive(change: Delivered): void {
      if (change.kind === "event" && change.name === "events.messageDeleted") jobs[0].run();
    },
    async stop(): Promise<void> {
      await Promise.all(jobs.map((job) => job.stop()));
      clearTimeout(retry);
    },
  };
}

export const noFileMaintenance: ReturnType<typeof maintainFiles> = {
  background: backgroundRunner(),
  receive: () => {},
  stop: async () => {},
};
