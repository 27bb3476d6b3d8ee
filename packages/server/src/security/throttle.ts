import { rateLimited } from "../failure.ts";

export interface Rate {
  /** Zero: no limit. */
  perSecond: number;
  burst: number;
}

export interface Throttle {
  /** Throws `rate_limited` when the key has used up its burst. */
  take(key: string): void;
}

/** A token bucket per key, kept only while it is not full. */
export function throttle({ perSecond, burst }: Rate): Throttle {
  if (perSecond === 0) return { take: () => {} };
  const buckets = new Map<string, { tokens: number; at: number }>();
  sweep(buckets, (bucket, now) => now - bucket.at > (burst / perSecond) * 1000);
  return {
    take(key) {
      const now = performance.now();
      const bucket = buckets.get(key);
      if (!bucket) {
        buckets.set(key, { tokens: burst - 1, at: now });
        return;
      }
      const refilled = bucket.tokens + ((now - bucket.at) / 1000) * perSecond;
      bucket.tokens = Math.min(burst, refilled);
      bucket.at = now;
      if (bucket.tokens < 1) {
        throw rateLimited(Math.ceil((1 - bucket.tokens) / perSecond));
      }
      bucket.tokens -= 1;
    },
  };
}

export interface FailureThrottle {
  /** Counts an attempt as failed until it succeeds; throws `rate_limited` while the key waits. */
  attempt(key: string): void;
  /** Takes one attempt back: it succeeded, which says nothing of the others. */
  forgive(key: string): void;
  /** Takes all of them back. */
  forget(key: string): void;
}

/** After `free` failures each further one doubles the wait, from one second up to `longest`. */
export function failureThrottle(free: number, longestSeconds: number): FailureThrottle {
  const failures = new Map<string, { count: number; until: number }>();
  const forgetMs = longestSeconds * 2000;
  sweep(failures, (entry, now) => now - entry.until > forgetMs);
  return {
    attempt(key) {
      const wait = (failures.get(key)?.until ?? 0) - performance.now();
      if (wait > 0) throw rateLimited(Math.ceil(wait / 1000), "too many failed attempts");
      const count = (failures.get(key)?.count ?? 0) + 1;
      const excess = count - free;
      const seconds = excess < 0 ? 0 : Math.min(longestSeconds, 2 ** excess);
      failures.set(key, { count, until: performance.now() + seconds * 1000 });
    },
    forgive(key) {
      const entry = failures.get(key);
      if (entry) failures.set(key, { count: entry.count - 1, until: performance.now() });
    },
    forget: (key) => void failures.delete(key),
  };
}

function sweep<Entry>(entries: Map<string, Entry>, stale: (entry: Entry, now: number) => boolean) {
  const timer = setInterval(() => {
    const now = performance.now();
    for (const [key, entry] of entries) if (stale(entry, now)) entries.delete(key);
  }, 60_000);
  timer.unref();
}
