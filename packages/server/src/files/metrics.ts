import type { Metrics } from "../observe/metrics.ts";
import { Failure } from "../rules/failure.ts";

/** Counts uploads and downloads. */
export interface FileMetrics {
  upload<Result>(work: () => Promise<Result>): Promise<Result>;
  download<Result>(work: () => Promise<Result>): Promise<Result>;
}

export function createFileMetrics(metrics: Metrics): FileMetrics {
  const uploads = new Map<string, number>();
  const downloads = new Map<string, number>();
  let running = 0;
  const readings = (counts: ReadonlyMap<string, number>) => () =>
    [...counts].map(([code, value]) => ({ labels: { code }, value }));
  metrics.watch("parley_uploads", "gauge", "Uploads of files in progress.", () => running);
  metrics.watch(
    "parley_uploads_total",
    "counter",
    "Uploads of files by outcome.",
    readings(uploads),
  );
  metrics.watch(
    "parley_downloads_total",
    "counter",
    "Downloads of files by outcome.",
    readings(downloads),
  );
  return {
    async upload(work) {
      running++;
      try {
        return await counted(uploads, work);
      } finally {
        running--;
      }
    },
    download: (work) => counted(downloads, work),
  };
}

async function counted<Result>(
  counts: Map<string, number>,
  work: () => Promise<Result>,
): Promise<Result> {
  const count = (code: string) => counts.set(code, (counts.get(code) ?? 0) + 1);
  try {
    const result = await work();
    count("ok");
    return result;
  } catch (error) {
    count(error instanceof Failure ? error.code : "internal");
    throw error;
  }
}
