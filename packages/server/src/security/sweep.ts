const SWEEP_MS = 60_000;

/** Deletes stale entries of a map every minute, for as long as the process runs. */
export function sweepEveryMinute<Entry>(
  entries: Map<string, Entry>,
  isStale: (entry: Entry, now: number) => boolean,
): void {
  const timer = setInterval(() => {
    const now = performance.now();
    for (const [key, entry] of entries) if (isStale(entry, now)) entries.delete(key);
  }, SWEEP_MS);
  timer.unref();
}
