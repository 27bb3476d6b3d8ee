import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import fc from "fast-check";
import { alone, type Cluster } from "../src/changes/cluster.ts";
import { Failure } from "../src/rules/failure.ts";
import { createFailureThrottle } from "../src/security/failure-throttle.ts";
import { createThrottle } from "../src/security/throttle.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const seconds = (count: number) => void jest.advanceTimersByTime(count * 1000);

/** The `retry_after` of the refusal, or null when the call is allowed. */
function refused(call: () => void): number | null {
  try {
    call();
    return null;
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "rate_limited") throw error;
    expect(error.parameters).toEqual({ retry_after: expect.any(Number) });
    return error.parameters?.retry_after ?? null;
  }
}

describe("rates", () => {
  test("a burst is allowed, and anything beyond it is refused", () => {
    const { take } = createThrottle({ perSecond: 2, burst: 5 });
    for (let call = 0; call < 5; call++) take("alice");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("what costs nothing is not shared with other nodes", () => {
    const shared: object[] = [];
    const cluster = {
      ...alone,
      others: () => ["b"],
      share: () => (item: object) => shared.push(item),
    };
    const scope = { cluster: cluster as unknown as Cluster, name: "costs" };
    const { take } = createThrottle({ perSecond: 2, burst: 5 }, scope);
    take("alice", 0);
    take("bob");
    seconds(1);
    expect(shared).toEqual([{ bob: 1 }]);
  });

  test("keys do not affect each other", () => {
    const { take } = createThrottle({ perSecond: 1, burst: 1 });
    take("alice");
    take("bob");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("the bucket refills at the given rate", () => {
    const { take } = createThrottle({ perSecond: 2, burst: 4 });
    for (let call = 0; call < 4; call++) take("alice");
    seconds(1);
    take("alice");
    take("alice");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("a long pause refills one burst and no more", () => {
    const { take } = createThrottle({ perSecond: 10, burst: 3 });
    take("alice");
    seconds(3600);
    for (let call = 0; call < 3; call++) take("alice");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("a refused call costs nothing", () => {
    const { take } = createThrottle({ perSecond: 1, burst: 1 });
    take("alice");
    for (let call = 0; call < 50; call++) expect(refused(() => take("alice"))).toBe(1);
    seconds(1);
    take("alice");
  });

  test("a rate of zero lifts the limit", () => {
    const { take } = createThrottle({ perSecond: 0, burst: 1 });
    for (let call = 0; call < 1000; call++) take("alice");
  });

  test("a caller that waits for retry_after is allowed", () => {
    const rate = fc.record({
      perSecond: fc.constantFrom(0.1, 0.3, 1, 3, 7, 20, 100),
      burst: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(rate, fc.array(fc.nat(3000), { maxLength: 40 }), (given, pauses) => {
        const { take } = createThrottle(given);
        for (const pause of pauses) {
          jest.advanceTimersByTime(pause);
          const wait = refused(() => take("alice"));
          if (wait === null) continue;
          expect(Number.isInteger(wait) && wait >= 1).toBe(true);
          seconds(wait);
          take("alice");
        }
      }),
    );
  });

  test("over any period no more than a burst plus the rate is allowed", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 100 }), (pauses) => {
        const { take } = createThrottle({ perSecond: 5, burst: 10 });
        let passed = 0;
        let elapsed = 0;
        for (const pause of pauses) {
          jest.advanceTimersByTime(pause);
          elapsed += pause;
          if (refused(() => take("alice")) === null) passed++;
        }
        expect(passed).toBeLessThanOrEqual(10 + (elapsed / 1000) * 5);
      }),
    );
  });

  test("a call takes as many tokens as it costs", () => {
    const { take } = createThrottle({ perSecond: 2, burst: 10 });
    take("alice", 7);
    expect(refused(() => take("alice", 5))).toBe(1);
    take("alice", 3);
  });

  test("a call that costs more than a burst is allowed with a full bucket, and paid back", () => {
    const { take } = createThrottle({ perSecond: 2, burst: 10 });
    take("alice", 14);
    expect(refused(() => take("alice"))).toBe(3);
  });

  test("what was charged is owed for at most a burst", () => {
    const { take, charge, owedMs } = createThrottle({ perSecond: 2, burst: 10 });
    charge("alice", 6);
    expect(owedMs("alice")).toBe(0);
    charge("alice", 100);
    expect(owedMs("alice")).toBe(5000);
    expect(refused(() => take("alice"))).toBe(6);
    seconds(5);
    expect(owedMs("alice")).toBe(0);
  });

  test("sweeping drops only buckets that are full again", () => {
    const { take } = createThrottle({ perSecond: 0.01, burst: 2 });
    take("alice");
    take("alice");
    seconds(90);
    expect(refused(() => take("alice"))).toBe(10);
    seconds(600);
    take("alice");
    take("alice");
    expect(refused(() => take("alice"))).not.toBeNull();
  });
});

describe("failed attempts", () => {
  const FREE = 3;
  const LONGEST = 20;

  function fresh(longest = LONGEST) {
    const attempts = createFailureThrottle(FREE, longest);
    const attempt = (key = "alice") =>
      refused(() => {
        attempts.check(key);
        attempts.count(key);
      });
    /** Fails `times` times, each time as soon as allowed, and returns how long each attempt waited. */
    const fail = (times: number) =>
      Array.from({ length: times }, () => {
        const wait = attempt();
        if (wait === null) return 0;
        seconds(wait);
        expect(attempt()).toBeNull();
        return wait;
      });
    return { ...attempts, attempt, fail };
  }

  test("the first few are free, then the wait doubles up to the longest", () => {
    const { fail } = fresh();
    expect(fail(FREE + 8)).toEqual([0, 0, 0, 1, 2, 4, 8, 16, LONGEST, LONGEST, LONGEST]);
  });

  test("an attempt is refused until the wait is over", () => {
    const { fail, attempt } = fresh();
    fail(FREE + 2);
    seconds(3);
    expect(attempt()).toBe(1);
    seconds(1);
    expect(attempt()).toBeNull();
  });

  test("a refused attempt does not count", () => {
    const { fail, attempt } = fresh();
    fail(FREE + 2);
    for (let refusal = 0; refusal < 50; refusal++) expect(attempt()).toBe(4);
    seconds(4);
    expect(attempt()).toBeNull();
    expect(attempt()).toBe(8);
  });

  test("concurrent attempts are slowed down like consecutive ones", () => {
    const { attempt } = fresh();
    const waits = Array.from({ length: 100 }, () => attempt());
    expect(waits.filter((wait) => wait === null)).toHaveLength(FREE);
  });

  test("keys do not affect each other", () => {
    const { fail, attempt } = fresh();
    fail(FREE + 3);
    expect(attempt("bob")).toBeNull();
  });

  test("forget() takes back all of them", () => {
    const { fail, forget } = fresh();
    fail(FREE + 3);
    forget("alice");
    expect(fail(FREE + 1)).toEqual([0, 0, 0, 1]);
  });

  test("forgive() takes back one and leaves the others", () => {
    const { fail, attempt, forgive } = fresh();
    fail(FREE - 1);
    for (let success = 0; success < 50; success++) {
      expect(attempt()).toBeNull();
      forgive("alice");
    }
    expect(fail(3)).toEqual([0, 1, 2]);
  });

  test("forgive() of a key without failures changes nothing", () => {
    const { fail, forgive } = fresh();
    forgive("alice");
    expect(fail(FREE + 1)).toEqual([0, 0, 0, 1]);
  });

  test("they are kept beyond the wait, and dropped after a long time without attempts", () => {
    const { fail, attempt } = fresh();
    fail(FREE + 1);
    seconds(2 + LONGEST);
    expect(attempt()).toBeNull();
    expect(attempt()).toBe(4);
    seconds(4 + 2 * LONGEST + 120);
    expect(fail(FREE + 1)).toEqual([0, 0, 0, 1]);
  });

  test("a success among them does not shorten how long the others are kept", () => {
    const longest = 300;
    const { fail, attempt, forgive } = fresh(longest);
    seconds(10 * longest);
    fail(FREE - 1);
    attempt();
    forgive("alice");
    seconds(longest);
    expect(fail(2)).toEqual([0, 1]);
  });
});
