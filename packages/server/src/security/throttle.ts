import { z } from "zod";
import { alone, type Cluster } from "../changes/cluster.ts";
import { rateLimited } from "../rules/failure.ts";

export interface Rate {
  /** Zero: no limit. */
  perSecond: number;
  burst: number;
}

export type Throttle = ReturnType<typeof createThrottle>;

/** The nodes that share a limit, and the name of the limit in their messages. */
export interface LimitScope {
  cluster: Cluster;
  name: string;
}

interface Bucket {
  tokens: number;
  /** When `tokens` was last brought up to date. */
  at: number;
}

/** How often a node reports to the others what it let through, and how many keys fit one report. */
const REPORT_MS = 100;
const KEYS_PER_REPORT = 2000;

/**
 * A token bucket per key. A full bucket is the same as none, so full ones are dropped.
 *
 * With several nodes each has its own bucket and deducts what the others report. Reports are up to
 * 100 ms late, and until then each node may let through one burst of its own. That overshoot is
 * paid back: a bucket can go down to minus one burst. A node that has just started has full buckets.
 */
export function createThrottle({ perSecond, burst }: Rate, scope?: LimitScope) {
  if (perSecond === 0) {
    return { take: () => {}, charge: () => {}, taken: () => 0, owedMs: () => 0, left: () => null };
  }
  const buckets = new Map<string, Bucket>();
  const refilled = ({ tokens, at }: Bucket, now: number) =>
    Math.min(burst, tokens + ((now - at) / 1000) * perSecond);
  sweepEveryMinute(buckets, (bucket, now) => refilled(bucket, now) === burst);

  function tokensOf(key: string): number {
    const bucket = buckets.get(key);
    return bucket ? refilled(bucket, performance.now()) : burst;
  }
  let taken = 0;
  const set = (key: string, tokens: number) => buckets.set(key, { tokens, at: performance.now() });
  const deduct = (key: string, count: number) => set(key, Math.max(-burst, tokensOf(key) - count));
  const report = scope && scope.cluster !== alone ? reporter(scope, deduct) : () => {};

  return {
    /**
     * Takes tokens of the key's bucket, by default one; throws `rate_limited` when it has fewer. A full
     * bucket lets any number through, and zero passes unless something is owed.
     */
    take(key: string, count = 1): void {
      const tokens = tokensOf(key);
      const needed = Math.min(count, burst);
      if (tokens < needed) throw rateLimited(Math.ceil((needed - tokens) / perSecond));
      if (count === 0) return;
      set(key, tokens - count);
      taken += count;
      report(key, count);
    },
    /** Takes tokens for what was done already. The bucket can go down to minus one burst. */
    charge(key: string, count: number): void {
      if (count <= 0) return;
      deduct(key, count);
      taken += count;
      report(key, count);
    },
    /** All tokens that this node has taken. */
    taken: () => taken,
    /** Milliseconds until nothing is owed any more. */
    owedMs: (key: string) => Math.ceil((Math.max(0, -tokensOf(key)) / perSecond) * 1000),
    /**
     * What is left of the key's bucket, the seconds until it is full, the size of a full one, and the
     * seconds in which an empty one is full. Null without a limit.
     */
    left(key: string) {
      const tokens = tokensOf(key);
      return {
        burst,
        windowSeconds: Math.ceil(burst / perSecond),
        tokens: Math.max(0, Math.floor(tokens)),
        fullInSeconds: Math.ceil((burst - tokens) / perSecond),
      };
    },
  };
}

/** Reports to the other nodes, in batches, how many tokens were taken here, and receives their reports. */
function reporter(
  { cluster, name }: LimitScope,
  receive: (key: string, count: number) => void,
): (key: string, count: number) => void {
  const taken = new Map<string, number>();
  const send = cluster.share({
    name,
    schema: z.record(z.string(), z.number().positive()),
    receive: (counts) => {
      for (const [key, count] of Object.entries(counts)) receive(key, count);
    },
  });
  function flush(): void {
    const counts = [...taken];
    taken.clear();
    if (cluster.others().length === 0) return;
    for (let from = 0; from < counts.length; from += KEYS_PER_REPORT) {
      send(Object.fromEntries(counts.slice(from, from + KEYS_PER_REPORT)));
    }
  }
  return (key, count) => {
    if (taken.size === 0) setTimeout(flush, REPORT_MS);
    taken.set(key, (taken.get(key) ?? 0) + count);
  };
}

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
