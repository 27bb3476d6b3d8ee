import { z } from "zod";
import { rateLimited } from "../rules/failure.ts";
import { sweepEveryMinute } from "./sweep.ts";
import type { LimitScope } from "./throttle.ts";

/** Makes a key wait after repeated failed attempts. */
export interface FailureThrottle {
  /** Throws `rate_limited` while the key has to wait. */
  check(key: string): void;
  /** Counts an attempt as failed, until `forgive` or `forget` takes it back. */
  count(key: string): void;
  /** Takes back one attempt, and ends the wait. */
  forgive(key: string): void;
  /** Takes back all attempts. */
  forget(key: string): void;
}

/** What nodes tell each other: what happened to a key, or, to a node that has just started, its state. */
const Update = z.union([
  z.object({ key: z.string(), did: z.enum(["count", "forgive", "forget"]) }),
  /** `waits` is the rest of the wait in milliseconds: nodes do not share a clock. */
  z.object({ key: z.string(), count: z.int(), waits: z.number() }),
]);
type Update = z.infer<typeof Update>;

/**
 * The failure number `free` makes the key wait for one second; each further one doubles the wait, up
 * to `longestSeconds`. With several nodes every change is sent to the others at once, so that only
 * attempts made before it arrives slip through.
 */
export function createFailureThrottle(
  free: number,
  longestSeconds: number,
  scope?: LimitScope,
): FailureThrottle {
  const failures = new Failures(free, longestSeconds);
  const send = scope?.cluster.share<Update>({
    name: scope.name,
    schema: Update,
    receive: (update) => failures.apply(update),
    state: () => failures.state(),
    replace: (updates) => {
      for (const update of updates) failures.apply(update);
    },
  });
  const applyAndSend = (did: "count" | "forgive" | "forget") => (key: string) => {
    failures[did](key);
    send?.({ key, did });
  };
  return {
    check: (key) => failures.check(key),
    count: applyAndSend("count"),
    forgive: applyAndSend("forgive"),
    forget: applyAndSend("forget"),
  };
}

/** Failed attempts by key, as this node knows them. */
class Failures {
  readonly #entries = new Map<string, { count: number; until: number }>();
  readonly #free: number;
  readonly #longestSeconds: number;

  constructor(free: number, longestSeconds: number) {
    this.#free = free;
    this.#longestSeconds = longestSeconds;
    const keptMs = longestSeconds * 2000;
    sweepEveryMinute(this.#entries, ({ until }, now) => now - until > keptMs);
  }

  check(key: string): void {
    const waitMs = (this.#entries.get(key)?.until ?? 0) - performance.now();
    if (waitMs > 0) throw rateLimited(Math.ceil(waitMs / 1000), "too many failed attempts");
  }

  count(key: string): void {
    const count = (this.#entries.get(key)?.count ?? 0) + 1;
    const excess = count - this.#free;
    const seconds = excess < 0 ? 0 : Math.min(this.#longestSeconds, 2 ** excess);
    this.#entries.set(key, { count, until: performance.now() + seconds * 1000 });
  }

  forgive(key: string): void {
    const entry = this.#entries.get(key);
    if (entry) this.#entries.set(key, { count: entry.count - 1, until: performance.now() });
  }

  forget(key: string): void {
    this.#entries.delete(key);
  }

  apply(update: Update): void {
    if ("did" in update) this[update.did](update.key);
    else if (update.count > (this.#entries.get(update.key)?.count ?? 0)) {
      const until = performance.now() + update.waits;
      this.#entries.set(update.key, { count: update.count, until });
    }
  }

  state(): Update[] {
    const now = performance.now();
    return [...this.#entries].map(([key, { count, until }]) => ({
      key,
      count,
      waits: until - now,
    }));
  }
}
