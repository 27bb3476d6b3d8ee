import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import fc from "fast-check";
import { Failure } from "../src/failure.ts";
import { failureThrottle, throttle } from "../src/security/throttle.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const seconds = (count: number) => void jest.advanceTimersByTime(count * 1000);

/** How long to wait, or null when the call is let through. */
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
  test("a burst is let through, and what comes on top of it is refused", () => {
    const { take } = throttle({ perSecond: 2, burst: 5 });
    for (let call = 0; call < 5; call++) take("alice");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("keys do not affect each other", () => {
    const { take } = throttle({ perSecond: 1, burst: 1 });
    take("alice");
    take("bob");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("time brings back as many calls as the rate says", () => {
    const { take } = throttle({ perSecond: 2, burst: 4 });
    for (let call = 0; call < 4; call++) take("alice");
    seconds(1);
    take("alice");
    take("alice");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("a long pause brings back one burst and no more", () => {
    const { take } = throttle({ perSecond: 10, burst: 3 });
    take("alice");
    seconds(3600);
    for (let call = 0; call < 3; call++) take("alice");
    expect(refused(() => take("alice"))).toBe(1);
  });

  test("a refused call costs nothing", () => {
    const { take } = throttle({ perSecond: 1, burst: 1 });
    take("alice");
    for (let call = 0; call < 50; call++) expect(refused(() => take("alice"))).toBe(1);
    seconds(1);
    take("alice");
  });

  test("a rate of zero lifts the limit", () => {
    const { take } = throttle({ perSecond: 0, burst: 1 });
    for (let call = 0; call < 1000; call++) take("alice");
  });

  test("whoever waits as long as they were told is let through", () => {
    const rate = fc.record({
      perSecond: fc.constantFrom(0.1, 0.3, 1, 3, 7, 20, 100),
      burst: fc.integer({ min: 1, max: 20 }),
    });
    fc.assert(
      fc.property(rate, fc.array(fc.nat(3000), { maxLength: 40 }), (given, pauses) => {
        const { take } = throttle(given);
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

  test("over any stretch of time no more is let through than a burst and the rate", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(400), { maxLength: 100 }), (pauses) => {
        const { take } = throttle({ perSecond: 5, burst: 10 });
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

  test("what is forgotten in time was full again anyway", () => {
    const { take } = throttle({ perSecond: 0.01, burst: 2 });
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
  const fresh = () => failureThrottle(FREE, LONGEST);
  const fail = (attempts: ReturnType<typeof fresh>, times: number, key = "alice") => {
    for (let failure = 0; failure < times; failure++) attempts.failed(key);
  };

  test("nobody waits who has not failed", () => {
    expect(refused(() => fresh().check("alice"))).toBeNull();
  });

  test("the first few failures cost nothing", () => {
    const attempts = fresh();
    fail(attempts, FREE - 1);
    expect(refused(() => attempts.check("alice"))).toBeNull();
  });

  test("from then on the wait doubles with each failure, up to the longest", () => {
    const attempts = fresh();
    fail(attempts, FREE - 1);
    const waits = Array.from({ length: 8 }, () => {
      attempts.failed("alice");
      return refused(() => attempts.check("alice"));
    });
    expect(waits).toEqual([1, 2, 4, 8, 16, LONGEST, LONGEST, LONGEST]);
  });

  test("once the wait is over the next attempt is let through", () => {
    const attempts = fresh();
    fail(attempts, FREE + 2);
    seconds(3);
    expect(refused(() => attempts.check("alice"))).toBe(1);
    seconds(1);
    expect(refused(() => attempts.check("alice"))).toBeNull();
  });

  test("a success forgets the failures before it", () => {
    const attempts = fresh();
    fail(attempts, FREE + 3);
    attempts.succeeded("alice");
    expect(refused(() => attempts.check("alice"))).toBeNull();
    fail(attempts, FREE - 1);
    expect(refused(() => attempts.check("alice"))).toBeNull();
  });

  test("keys do not affect each other", () => {
    const attempts = fresh();
    fail(attempts, FREE + 3);
    expect(refused(() => attempts.check("bob"))).toBeNull();
  });

  test("failures are remembered beyond the wait, and forgotten after a long quiet time", () => {
    const attempts = fresh();
    fail(attempts, FREE + 1);
    seconds(2 + LONGEST);
    attempts.failed("alice");
    expect(refused(() => attempts.check("alice"))).toBe(4);
    seconds(4 + 2 * LONGEST + 120);
    fail(attempts, FREE - 1);
    expect(refused(() => attempts.check("alice"))).toBeNull();
  });

  test("any number of failures leaves a wait that ends", () => {
    const attempts = fresh();
    fail(attempts, 5000);
    expect(refused(() => attempts.check("alice"))).toBe(LONGEST);
  });
});
