import { z } from "zod";
import { alone, type Cluster } from "../changes/cluster.ts";
import { rateLimited } from "../rules/failure.ts";
import { sweepEveryMinute } from "./sweep.ts";

export interface Rate {
  /** Zero: no limit. */
  perSecond: number;
  burst: number;
}

export interface Throttle {
  /**
   * Takes tokens of the key's bucket, by default one; throws `rate_limited` when it has fewer. A full
   * bucket lets any number through.
   */
  take(key: string, count?: number): void;
  /** Takes tokens for what was done already. The bucket can go down to minus one burst. */
  charge(key: string, count: number): void;
  /** Milliseconds until nothing is owed any more. */
  owedMs(key: string): number;
  /** What is left of the key's bucket; null without a limit. */
  left(key: string): Left | null;
}

export interface Left {
  /** The size of a full bucket, and the seconds in which an empty one is full. */
  burst: number;
  windowSeconds: number;
  tokens: number;
  /** Seconds until the bucket is full. */
  fullInSeconds: number;
}

/** The nodes that share a limit, and the name of the limit in their messages. */
export interface LimitScope {
  cluster: Cluster;
  name: string;
}

/** How often a node reports to the others what it let through, and how many keys fit one report. */
const REPORT_MS = 100;
const KEYS_PER_REPORT = 2000;

/**
 * A token bucket per key.
 *
 * With several nodes each has its own bucket and deducts what the others report. Reports are up to
 * 100 ms late, and until then each node may let through one burst of its own. That overshoot is
 * paid back: a bucket can go down to minus one burst. A node that has just started has full buckets.
 */
export function createThrottle(rate: Rate, scope?: LimitScope): Throttle {
  if (rate.perSecond === 0) {
    return { take: () => {}, charge: () => {}, owedMs: () => 0, left: () => null };
  }
  const buckets = new Buckets(rate);
  const isShared = scope !== undefined && scope.cluster !== alone;
  const report = isShared ? reporter(scope, (key, count) => buckets.deduct(key, count)) : undefined;
  return {
    take(key, count = 1) {
      buckets.take(key, count);
      report?.(key, count);
    },
    charge(key, count) {
      if (count <= 0) return;
      buckets.deduct(key, count);
      report?.(key, count);
    },
    owedMs: (key) => buckets.owedMs(key),
    left: (key) => buckets.left(key),
  };
}

interface Bucket {
  tokens: number;
  /** When `tokens` was last brought up to date. */
  at: number;
}

/** Token buckets by key. A full bucket is the same as none, so full ones are dropped. */
class Buckets {
  readonly #rate: Rate;
  readonly #buckets = new Map<string, Bucket>();

  constructor(rate: Rate) {
    this.#rate = rate;
    sweepEveryMinute(this.#buckets, (bucket, now) => this.#refilled(bucket, now) === rate.burst);
  }

  take(key: string, count: number): void {
    const bucket = this.#current(key);
    const needed = Math.min(count, this.#rate.burst);
    if (bucket.tokens < needed) {
      throw rateLimited(Math.ceil((needed - bucket.tokens) / this.#rate.perSecond));
    }
    bucket.tokens -= count;
  }

  owedMs(key: string): number {
    if (!this.#buckets.has(key)) return 0;
    const { tokens } = this.#current(key);
    return tokens < 0 ? Math.ceil((-tokens / this.#rate.perSecond) * 1000) : 0;
  }

  left(key: string): Left {
    const { burst, perSecond } = this.#rate;
    const tokens = this.#buckets.has(key) ? this.#current(key).tokens : burst;
    return {
      burst,
      windowSeconds: Math.ceil(burst / perSecond),
      tokens: Math.max(0, Math.floor(tokens)),
      fullInSeconds: Math.ceil((burst - tokens) / perSecond),
    };
  }

  deduct(key: string, count: number): void {
    const bucket = this.#current(key);
    bucket.tokens = Math.max(-this.#rate.burst, bucket.tokens - count);
  }

  #current(key: string): Bucket {
    const now = performance.now();
    const bucket = this.#buckets.get(key);
    if (!bucket) {
      const full = { tokens: this.#rate.burst, at: now };
      this.#buckets.set(key, full);
      return full;
    }
    bucket.tokens = this.#refilled(bucket, now);
    bucket.at = now;
    return bucket;
  }

  #refilled({ tokens, at }: Bucket, now: number): number {
    const { burst, perSecond } = this.#rate;
    return Math.min(burst, tokens + ((now - at) / 1000) * perSecond);
  }
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
