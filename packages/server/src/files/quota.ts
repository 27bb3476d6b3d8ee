import type { Metrics } from "../observe/metrics.ts";
import { forbidden } from "../rules/failure.ts";
import type { Store } from "../store/store.ts";

/** How long a total is used: it is the sum over all files. */
const FRESH_MS = 60_000;

/** The limit for the files of everybody together, in bytes; 0 for none. */
export function createFileQuota(
  store: Pick<Store, "read">,
  limit: number,
  metrics: Pick<Metrics, "watch">,
) {
  let total = { bytes: 0, readAt: Number.NEGATIVE_INFINITY };
  metrics.watch(
    "parley_file_quota_bytes",
    "gauge",
    "The limit stored_file_bytes for the files of everybody together; 0 for none.",
    () => limit,
  );
  return {
    /**
     * Throws (403) if a file of this size has no room. What other nodes add counts after a minute at the
     * latest, and so does what is deleted.
     */
    async check(size: number): Promise<void> {
      if (limit === 0) return;
      const now = performance.now();
      if (now - total.readAt > FRESH_MS) {
        total = { bytes: await store.read((tx) => tx.announcedBytes()), readAt: now };
      }
      if (total.bytes + size > limit) throw forbidden("this server has no room for more files");
    },
    /** A file was announced. */
    add(size: number): void {
      total.bytes += size;
    },
  };
}
