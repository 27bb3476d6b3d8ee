import type { Metrics } from "../observe/metrics.ts";
import { Failure } from "../rules/failure.ts";

/** Counts uploads and downloads. */
export function createFileMetrics(metrics: Metrics) {
  let running = 0;
  metrics.watch("parley_uploads", "gauge", "Uploads of files in progress.", () => running);
  const countUpload = metrics.counter(
    "parley_uploads_total",
    "Uploads of files by outcome.",
    "code",
  );
  const countDownload = metrics.counter(
    "parley_downloads_total",
    "Downloads of files by outcome.",
    "code",
  );
  return {
    async upload<Result>(work: () => Promise<Result>) {
      running++;
      return counted(countUpload, work).finally(() => running--);
    },
    download: <Result>(work: () => Promise<Result>) => counted(countDownload, work),
  };
}

async function counted<Result>(
  count: (code: string) => void,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    const result = await work();
    count("ok");
    return result;
  } catch (error) {
    count(error instanceof Failure ? error.code : "internal");
    throw error;
  }
}
