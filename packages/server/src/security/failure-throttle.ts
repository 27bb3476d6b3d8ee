import { z } from "zod";
import { rateLimited } from "../rules/failure.ts";
import { type LimitScope, sweepEveryMinute } from "./throttle.ts";

export type FailureThrottle = ReturnType<typeof createFailureThrottle>;

/** What nodes tell each other: what happened to a key, or, to a node that has just started, its state. */
const Update = z.union([
  z.object({ key: z.string(), did: z.enum(["count", "forgive", "forget"]) }),
  /** `waits` is the rest of the wait in milliseconds: nodes do not share a clock. */
  z.object({ key: z.string(), count: z.int(), waits: z.number() }),
]);
type Update = z.infer<typeof Update>;

/**
 * Makes a key wait after repeated failed attempts: the failure number `free` makes it wait for one
 * second; each further one doubles the wait, up to `longestSeconds`. With several nodes every change is sent to the others at once, so that only
 * attempts made before it arrives slip through.
 */
export function createFailureThrottle(free: number, longestSeconds: number, scope?: LimitScope) {
  const failures = new Map<string, { count: number; until: number }>();
  sweepEveryMinute(failures, ({ until }, now) => now - until > longestSeconds * 2000);
  const set = (key: string, count: number, waitMs: number) =>
    failures.set(key, { count, until: performance.now() + waitMs });

  const changes = {
    count(key: string) {
      const count = (failures.get(key)?.count ?? 0) + 1;
      const seconds = count < free ? 0 : Math.min(longestSeconds, 2 ** (count - free));
      set(key, count, seconds * 1000);
    },
    forgive(key: string) {
      const known = failures.get(key);
      if (known) set(key, known.count - 1, 0);
    },
    forget: (key: string) => void failures.delete(key),
  };

  function apply(update: Update): void {
    if ("did" in update) changes[update.did](update.key);
    else if (update.count > (failures.get(update.key)?.count ?? 0)) {
      set(update.key, update.count, update.waits);
    }
  }

  const send = scope?.cluster.share<Update>({
    name: scope.name,
    schema: Update,
    receive: apply,
    state: () => {
      const now = performance.now();
      return [...failures].map(([key, { count, until }]) => ({ key, count, waits: until - now }));
    },
    replace: (updates) => updates.forEach(apply),
  });
  const applyAndSend = (did: keyof typeof changes) => (key: string) => {
    changes[did](key);
    send?.({ key, did });
  };
  return {
    /** Throws `rate_limited` while the key has to wait. */
    check(key: string): void {
      const waitMs = (failures.get(key)?.until ?? 0) - performance.now();
      if (waitMs > 0) throw rateLimited(Math.ceil(waitMs / 1000), "too many failed attempts");
    },
    /** Counts an attempt as failed, until `forgive` or `forget` takes it back. */
    count: applyAndSend("count"),
    /** Takes back one attempt, and ends the wait. */
    forgive: applyAndSend("forgive"),
    /** Takes back all attempts. */
    forget: applyAndSend("forget"),
  };
}
