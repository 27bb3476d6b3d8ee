/** How long reading the duration may take: files are made by strangers. */
const DEADLINE_MS = 3000;

/** What the thread answers: the duration in seconds, if it found one. */
export type MediaReply = number | null;

/**
 * The duration of audio or video in milliseconds; null if the file does not say it. A file can be made
 * so that reading it takes very long, so a thread does it, which is ended at the deadline.
 */
export async function durationOf(path: string, type: string): Promise<number | null> {
  if (!/^(?:audio|video)\//.test(type)) return null;
  const worker = new Worker(new URL("./media-worker.ts", import.meta.url).href, { argv: [path] });
  const { promise, resolve } = Promise.withResolvers<MediaReply>();
  const timer = setTimeout(() => resolve(null), DEADLINE_MS);
  worker.addEventListener("message", ({ data }: MessageEvent<MediaReply>) => resolve(data));
  worker.addEventListener("error", () => resolve(null));
  try {
    const seconds = await promise;
    return seconds === null ? null : Math.round(seconds * 1000);
  } finally {
    clearTimeout(timer);
    worker.terminate();
  }
}
