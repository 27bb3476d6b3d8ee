import { parseFile } from "music-metadata";

/** How long reading the duration may take: files are made by strangers. */
const DEADLINE_MS = 5000;

/** The duration of audio or video in milliseconds; null if the file does not say it. */
export async function durationOf(path: string, type: string): Promise<number | null> {
  if (!/^(?:audio|video)\//.test(type)) return null;
  const read = parseFile(path, { skipCovers: true, skipPostHeaders: true }).then(
    ({ format }) => format.duration,
    () => undefined,
  );
  const seconds = await Promise.race([read, Bun.sleep(DEADLINE_MS)]);
  return seconds !== undefined && Number.isFinite(seconds) ? Math.round(seconds * 1000) : null;
}
