import type { Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { BackgroundKind, BackgroundWork } from "../store/background-work.ts";

const FAILED: Record<BackgroundKind, string> = {
  writes: "store writes failed",
  search_indexing: "search indexing failed",
  checkpoint: "checkpoint failed",
  pruning: "pruning failed",
  restore_mark: "restore mark failed",
  file_deletion: "file deletion failed",
  file_checks: "file checks failed",
};

const RECOVERED: Record<BackgroundKind, string> = {
  writes: "store writes recovered",
  search_indexing: "search indexing recovered",
  checkpoint: "checkpoint recovered",
  pruning: "pruning recovered",
  restore_mark: "restore mark recovered",
  file_deletion: "file deletion recovered",
  file_checks: "file checks recovered",
};

/** Logs when background work begins to fail and recovers, and counts the failures. */
export function watchBackgroundWork(
  works: readonly BackgroundWork[],
  log: Logger,
  metrics: Metrics,
): void {
  for (const work of works) {
    work.onChange((kind, error) => {
      if (error === null) log.info(RECOVERED[kind]);
      else log.error({ err: error }, FAILED[kind]);
    });
  }
  metrics.watch(
    "parley_store_background_failures_total",
    "counter",
    "Failures of the background work of the store and the file storage by kind.",
    () =>
      works
        .flatMap((work) => [...work.failures()])
        .map(([kind, value]) => ({ labels: { kind }, value })),
  );
}
