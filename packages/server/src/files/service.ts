import type { Limits } from "../config/limits.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Throttle } from "../security/throttle.ts";
import type { Vault } from "../security/vault.ts";
import type { Store } from "../store/store.ts";
import type { Blobs } from "./blobs.ts";
import { type DownloadRequest, download } from "./downloads.ts";
import { createLinks } from "./links.ts";
import { createFileMetrics } from "./metrics.ts";
import { createFileQuota } from "./quota.ts";
import { createUploads } from "./uploads.ts";

export interface FilesOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly blobs: Blobs;
  readonly vault: Pick<Vault, "fingerprint">;
  readonly limits: Limits;
  readonly metrics: Metrics;
  readonly pixels: Throttle;
}

export type Files = ReturnType<typeof createFiles>;

/** The bytes of files, and the links that lead to them. */
export function createFiles({ store, blobs, vault, limits, metrics, pixels }: FilesOptions) {
  const receive = createUploads({ store, blobs, limits, pixels });
  const counted = createFileMetrics(metrics);
  return {
    /** See `createUploads`. */
    receive: (...given: Parameters<typeof receive>) => counted.upload(() => receive(...given)),
    links: createLinks(vault),
    blobs,
    quota: createFileQuota(store, limits.stored_file_bytes, metrics),
    /** Answers a request for the bytes of a file. Throws `not_found` if there are none. */
    download: (request: DownloadRequest) =>
      counted.download(() => download({ store, blobs }, request)),
  };
}
