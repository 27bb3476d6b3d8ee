import { z } from "zod";
import { alone, type Cluster } from "../realtime/cluster.ts";
import { rateLimited } from "../rules/failure.ts";

export interface Rate {
  /** Zero: no limit. */
  perSecond: number;
  burst: number;
}

export interface Throttle {
  /** Throws `rate_limited` when the key has used up its burst. */
  take(key: string): void;
}

/** The nodes over which a limit holds, and the name under which they speak of it. */
export interface Everywhere {
  cluster: Cluster;
  name: string;
}

/** How often nodes tell each other what was taken, and of how many keys at once. */
const TELL_MS = 100;
const TOLD_AT_ONCE = 2000;

/**
 * A token bucket per key, kept only while it is not full.
 *
 * Over several nodes each has the bucket, and every node deducts what the others have let through.
 * They hear of it up to 100 ms late. Until then each other node may let through what is in its own
 * bucket, at most one burst: that is the overshoot, and what it took is paid back, since a bucket
 * can owe up to a burst. A node that has just started has full buckets.
 */
export function throttle({ perSecond, burst }: Rate, everywhere?: Everywhere): Throttle {
  if (perSecond === 0) return { take: () => {} };
  const buckets = new Map<string, { tokens: number; at: number }>();
  const refilled = ({ tokens, at }: { tokens: number; at: number }, now: number) =>
    Math.min(burst, tokens + ((now - at) / 1000) * perSecond);
  sweep(buckets, (bucket, now) => refilled(bucket, now) === burst);

  function bucketOf(key: string) {
    const now = performance.now();
    const bucket = buckets.get(key);
    if (!bucket) {
      const full = { tokens: burst, at: now };
      buckets.set(key, full);
      return full;
    }
    bucket.tokens = refilled(bucket, now);
    bucket.at = now;
    return bucket;
  }

  function deduct(key: string, count: number): void {
    const bucket = bucketOf(key);
    bucket.tokens = Math.max(-burst, bucket.tokens - count);
  }
  const isShared = everywhere !== undefined && everywhere.cluster !== alone;
  const told = isShared ? tally(everywhere, deduct) : undefined;

  return {
    take(key) {
      const bucket = bucketOf(key);
      if (bucket.tokens < 1) {
        throw rateLimited(Math.ceil((1 - bucket.tokens) / perSecond));
      }
      bucket.tokens -= 1;
      told?.(key);
    },
  };
}

/** Tells the other nodes how often each key was taken here, and hears it from them. */
function tally(
  { cluster, name }: Everywhere,
  receive: (key: string, count: number) => void,
): (key: string) => void {
  const taken = new Map<string, number>();
  const tell = cluster.share({
    name,
    schema: z.record(z.string(), z.int().positive()),
    receive: (counts) => {
      for (const [key, count] of Object.entries(counts)) receive(key, count);
    },
  });
  function flush(): void {
    const all = [...taken];
    taken.clear();
    if (cluster.others().length === 0) return;
    for (let from = 0; from < all.length; from += TOLD_AT_ONCE) {
      tell(Object.fromEntries(all.slice(from, from + TOLD_AT_ONCE)));
    }
  }
  return (key) => {
    if (taken.size === 0) setTimeout(flush, TELL_MS);
    taken.set(key, (taken.get(key) ?? 0) + 1);
  };
}

export interface FailureThrottle {
  /** Throws `rate_limited` while the key waits. */
  check(key: string): void;
  /** Counts an attempt as failed until it succeeds. */
  count(key: string): void;
  /** Takes one attempt back: it succeeded, which says nothing of the others. */
  forgive(key: string): void;
  /** Takes all of them back. */
  forget(key: string): void;
}

/** What happened to a key, or how it stands, for a node that has just come. */
const Told = z.union([
  z.object({ key: z.string(), did: z.enum(["count", "forgive", "forget"]) }),
  z.object({ key: z.string(), count: z.int(), waits: z.number() }),
]);
type Told = z.infer<typeof Told>;

/**
 * After `free` failures each further one doubles the wait, from one second up to `longest`.
 * Over several nodes everything is told at once: more gets through only while that is on its way.
 */
export function failureThrottle(
  free: number,
  longestSeconds: number,
  everywhere?: Everywhere,
): FailureThrottle {
  const failures = new Map<string, { count: number; until: number }>();
  const forgetMs = longestSeconds * 2000;
  sweep(failures, (entry, now) => now - entry.until > forgetMs);

  const change = {
    count(key: string) {
      const count = (failures.get(key)?.count ?? 0) + 1;
      const excess = count - free;
      const seconds = excess < 0 ? 0 : Math.min(longestSeconds, 2 ** excess);
      failures.set(key, { count, until: performance.now() + seconds * 1000 });
    },
    forgive(key: string) {
      const entry = failures.get(key);
      if (entry) failures.set(key, { count: entry.count - 1, until: performance.now() });
    },
    forget: (key: string) => void failures.delete(key),
  };

  function receive(told: Told): void {
    if ("did" in told) change[told.did](told.key);
    else if (told.count > (failures.get(told.key)?.count ?? 0)) {
      failures.set(told.key, { count: told.count, until: performance.now() + told.waits });
    }
  }
  const tell = everywhere?.cluster.share<Told>({
    name: everywhere.name,
    schema: Told,
    receive,
    state: () =>
      [...failures].map(([key, { count, until }]) => {
        return { key, count, waits: until - performance.now() };
      }),
    replace: (items) => items.forEach(receive),
  });

  const doAndTell = (did: keyof typeof change) => (key: string) => {
    change[did](key);
    tell?.({ key, did });
  };
  return {
    check(key) {
      const wait = (failures.get(key)?.until ?? 0) - performance.now();
      if (wait > 0) throw rateLimited(Math.ceil(wait / 1000), "too many failed attempts");
    },
    count: doAndTell("count"),
    forgive: doAndTell("forgive"),
    forget: doAndTell("forget"),
  };
}

function sweep<Entry>(entries: Map<string, Entry>, stale: (entry: Entry, now: number) => boolean) {
  const timer = setInterval(() => {
    const now = performance.now();
    for (const [key, entry] of entries) if (stale(entry, now)) entries.delete(key);
  }, 60_000);
  timer.unref();
}
