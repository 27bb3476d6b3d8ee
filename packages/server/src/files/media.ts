import { askWorker } from "./ask-worker.ts";

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
  const seconds = await askWorker<MediaReply>(worker, DEADLINE_MS);
  return seconds === null ? null : Math.round(seconds * 1000);
}
