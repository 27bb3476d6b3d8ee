import { throttles as declared, type Operation, type ThrottleName } from "@parley/protocol";
import type { Cluster } from "../changes/cluster.ts";
import type { Limits } from "../config/config.ts";
import type { AgentCaller, AnyCaller, Origin } from "../security/caller.ts";
import { createFailureThrottle, type FailureThrottle } from "../security/failure-throttle.ts";
import { createThrottle, type Throttle } from "../security/throttle.ts";

type Declared = typeof declared;
/** Attempts at a password have a throttle of their own: `security/sign-in-throttle.ts`. */
type Counted = Exclude<ThrottleName, "passwords">;
type Guarded = {
  [Name in Counted]: Declared[Name] extends { failures: number } ? Name : never;
}[Counted];
type Limited = Exclude<Counted, Guarded>;

/** The throttles that the contract declares. */
export type Throttles = Readonly<Record<Limited, Throttle> & Record<Guarded, FailureThrottle>>;

/** They hold across all nodes. */
export function createThrottles(limits: Limits, cluster: Cluster): Throttles {
  const made = Object.entries(declared).map(([name, each]) => {
    const scope = { cluster, name: name.replaceAll("_", " ") };
    if ("failures" in each) {
      return [name, createFailureThrottle(each.failures, each.longestSeconds, scope)];
    }
    const rate =
      "limit" in each
        ? { perSecond: limits[each.limit] / 3600, burst: limits[each.limit] }
        : { perSecond: each.burst / each.seconds, burst: each.burst };
    return [name, createThrottle(rate, scope)];
  });
  return Object.fromEntries(made) as Throttles;
}

interface Counting {
  readonly throttles: Throttles;
  readonly caller: AnyCaller | AgentCaller | undefined;
  readonly origin: Pick<Origin, "network">;
}

/** Counts against a throttle that the operation declares. Throws `rate_limited`. */
export function take(context: Counting, name: Limited, count = 1): void {
  if (count > 0) context.throttles[name].take(keyOf(context, name), count);
}

/** Throws `rate_limited` while the caller has to wait after failed attempts. */
export function checkFailures(context: Counting, name: Guarded): void {
  context.throttles[name].check(keyOf(context, name));
}

export function countFailure(context: Counting, name: Guarded): void {
  context.throttles[name].count(keyOf(context, name));
}

/** Counts a call against the throttles of which it always takes one. */
export function takeDeclared(context: Counting, { throttles }: Operation): void {
  for (const { name, of } of throttles) if (of === null) take(context, name as Limited);
}

function keyOf({ caller, origin }: Counting, name: Counted): string {
  if (declared[name].per === "network" || !caller) return origin.network;
  return caller.kind === "service" ? caller.key.name : `${caller.account.id}`;
}
