import type { Metrics } from "../observe/metrics.ts";
import { Failure, forbidden } from "../rules/failure.ts";
import type { Vault } from "../security/vault.ts";
import type { Store } from "../store/store.ts";
import { type DownloadRequest, download } from "./downloads.ts";
import { createLinks } from "./links.ts";
import { createUploads, type UploadsOptions } from "./uploads.ts";

export interface FilesOptions extends UploadsOptions {
  readonly vault: Pick<Vault, "fingerprint">;
  readonly metrics: Metrics;
}

export type Files = ReturnType<typeof createFiles>;

/** The bytes of files, and the links that lead to them. */
export function createFiles({ store, blobs, vault, limits, metrics, pixels }: FilesOptions) {
  const receive = createUploads({ store, blobs, limits, pixels });
  const counted = createFileMetrics(metrics);
  return {
    receive: (...given: Parameters<typeof receive>) => counted.upload(() => receive(...given)),
    links: createLinks(vault),
    blobs,
    quota: createFileQuota(store, limits.stored_file_bytes, metrics),
    download: (request: DownloadRequest) =>
      counted.download(() => download({ store, blobs }, request)),
  };
}

function createFileMetrics(metrics: Metrics) {
  let running = 0;
  metrics.watch("parley_uploads", "gauge", "Uploads of files in progress.", () => running);
  const outcomes = (name: string, what: string) => {
    const count = metrics.counter(name, `${what} of files by outcome.`, "code");
    return async <Result>(work: () => Promise<Result>) => {
      try {
        const result = await work();
        count("ok");
        return result;
      } catch (error) {
        count(error instanceof Failure ? error.code : "internal");
        throw error;
      }
    };
  };
  const upload = outcomes("parley_uploads_total", "Uploads");
  return {
    upload<Result>(work: () => Promise<Result>) {
      running++;
      return upload(work).finally(() => running--);
    },
    download: outcomes("parley_downloads_total", "Downloads"),
  };
}

/** How long a total is used: it is the sum over all files. */
const FRESH_MS = 60_000;

/** The limit for the files of everybody together, in bytes; 0 for none. */
function createFileQuota(store: Pick<Store, "read">, limit: number, metrics: Metrics) {
  let total = { bytes: 0, readAt: Number.NEGATIVE_INFINITY };
  metrics.watch(
    "parley_file_quota_bytes",
    "gauge",
    "The limit stored_file_bytes for the files of everybody together; 0 for none.",
    () => limit,
  );
  return {
    /** Throws (403) if there is no room. What other nodes add or delete counts within a minute. */
    async check(size: number): Promise<void> {
      if (limit === 0) return;
      const now = performance.now();
      if (now - total.readAt > FRESH_MS) {
        total = { bytes: await store.read((tx) => tx.announcedBytes()), readAt: now };
      }
      if (total.bytes + size > limit) throw forbidden("this server has no room for more files");
    },
    add(size: number): void {
      total.bytes += size;
    },
  };
}
