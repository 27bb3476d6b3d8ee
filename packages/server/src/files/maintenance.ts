import type { Delivered } from "../changes/bus.ts";
import type { Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { type BackgroundWork, backgroundRunner } from "../store/background-work.ts";
import { FIRST_FILE } from "../store/files.ts";
import type { Store } from "../store/store.ts";
import { createLease } from "../upkeep/lease.ts";
import { runRegularly } from "../upkeep/regularly.ts";
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

export interface FileMaintenanceOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly blobs: Blobs;
  /** The id of this node. */
  readonly node: string;
  /** Whether other nodes may be receiving files into the same folder. */
  readonly isShared: boolean;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface FileMaintenance {
  readonly background: BackgroundWork;
  /** Receives changes: the bytes of a deleted message are deleted at once. */
  receive(change: Delivered): void;
  stop(): Promise<void>;
}

/**
 * Keeps the rows and the bytes of files consistent, on one node at a time: deletes the bytes of deleted
 * files every minute; every hour uploads that nothing uses and bytes without a row, and looks for rows
 * without bytes.
 */
export function maintainFiles(options: FileMaintenanceOptions): FileMaintenance {
  const { store, blobs, node, isShared, log, metrics } = options;
  const background = backgroundRunner("file_deletion", "file_checks");
  const started = Date.now();
  const stopping = new AbortController();
  const { signal } = stopping;
  let checkedUpTo = FIRST_FILE;
  let figures: StorageFigures | null = null;
  watchFigures(metrics, () => figures);

  const deletion = createLease(store, "file deletion", node);
  let retry: NodeJS.Timeout | undefined;
  async function deleteBytes(): Promise<void> {
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
  async function checkAll(): Promise<void> {
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
    runRegularly(MINUTE_MS, () => background.run("file_deletion", deleteBytes)),
    runRegularly(HOUR_MS, () => background.run("file_checks", checkAll)),
  ] as const;
  return {
    background,
    receive(change) {
      if (change.kind === "event" && change.name === "events.messageDeleted") jobs[0].run();
    },
    async stop() {
      stopping.abort();
      for (const job of jobs) await job.stop();
      clearTimeout(retry);
    },
  };
}

/** For servers that take no files. */
export const noFileMaintenance: FileMaintenance = {
  background: backgroundRunner(),
  receive: () => {},
  stop: async () => {},
};

function watchFigures(metrics: Metrics, read: () => StorageFigures | null): void {
  const figure = (name: keyof StorageFigures) => () => read()?.[name] ?? [];
  metrics.watch(
    "parley_file_objects",
    "gauge",
    "Objects in the file storage, previews included, at the last check of this node.",
    figure("objects"),
  );
  metrics.watch(
    "parley_file_bytes",
    "gauge",
    "Bytes in the file storage at the last check of this node.",
    figure("bytes"),
  );
}
