import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { alone } from "../src/changes/cluster.ts";
import { Failure } from "../src/rules/failure.ts";
import { type Attempt, createSignInThrottle } from "../src/security/sign-in-throttle.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function setUp() {
  const { attempt } = createSignInThrottle((name) => ({ cluster: alone, name }));
  const from = (network: string, rest: Partial<Attempt> = {}): Attempt => ({
    username: "alice",
    network,
    isKnownNetwork: false,
    device: null,
    ...rest,
  });
  const isAllowed = (given: Attempt) => {
    try {
      attempt(given).withdrawn();
      return true;
    } catch (error) {
      if (error instanceof Failure && error.code === "rate_limited") return false;
      throw error;
    }
  };
  const fail = (given: Attempt, times = 1) => {
    for (let count = 0; count < times; count++) attempt(given);
  };
  return { attempt, from, isAllowed, fail };
}

test("a network waits after five failures for a username; other networks do not", () => {
  const { from, isAllowed, fail } = setUp();
  fail(from("here"), 5);
  expect(isAllowed(from("here"))).toBe(false);
  expect(isAllowed(from("here", { username: "bob" }))).toBe(true);
  expect(isAllowed(from("elsewhere"))).toBe(true);
});

test("after guesses from many networks only networks and devices new to the account wait", () => {
  const { from, isAllowed, fail } = setUp();
  for (let count = 0; count < 100; count++) fail(from(`network ${count}`));
  expect(isAllowed(from("another"))).toBe(false);
  expect(isAllowed(from("home", { isKnownNetwork: true }))).toBe(true);
  expect(isAllowed(from("another", { device: "phone" }))).toBe(true);
});

test("a known device waits only for its own failures, in any network", () => {
  const { from, isAllowed, fail } = setUp();
  fail(from("cafe"), 5);
  expect(isAllowed(from("cafe", { device: "phone" }))).toBe(true);
  fail(from("cafe", { device: "phone" }), 5);
  expect(isAllowed(from("home", { device: "phone" }))).toBe(false);
  expect(isAllowed(from("home", { device: "laptop" }))).toBe(true);
});

test("guesses with many known devices of one account are slowed down together", () => {
  const { from, isAllowed, fail } = setUp();
  for (let count = 0; count < 100; count++) fail(from("here", { device: `device ${count}` }));
  expect(isAllowed(from("here", { device: "one more" }))).toBe(false);
});

test("a refused attempt counts nowhere", () => {
  const { attempt, from, fail } = setUp();
  for (let count = 0; count < 100; count++) fail(from("here", { username: `user ${count}` }));
  for (let count = 0; count < 200; count++) {
    expect(() => attempt(from("here"))).toThrow("too many failed attempts");
  }
  // Had they been counted, the username would be over its own limit now.
  attempt(from("elsewhere")).succeeded();
});

test("a success clears the failures of that network for that username", () => {
  const { attempt, from, isAllowed, fail } = setUp();
  fail(from("here"), 4);
  attempt(from("here")).succeeded();
  fail(from("here"), 4);
  expect(isAllowed(from("here"))).toBe(true);
});

/** Whether a code is checked after the right password; it counts as wrong. */
function guessCode(attempt: ReturnType<typeof setUp>["attempt"], given: Attempt): boolean {
  try {
    attempt(given).checksCode();
    return true;
  } catch (error) {
    if (error instanceof Failure && error.code === "rate_limited") return false;
    throw error;
  }
}

test("guessing codes with the right password from ever new networks is hopeless", () => {
  const { attempt, from } = setUp();
  const DAYS = 30;
  let guesses = 0;
  for (let minute = 0; minute < DAYS * 24 * 60; minute++) {
    if (guessCode(attempt, from(`network ${minute}`))) guesses++;
    jest.advanceTimersByTime(60_000);
  }
  expect(guesses).toBeLessThan(DAYS + 30);
});

test("guessed codes slow down neither known devices nor known networks", () => {
  const { attempt, from } = setUp();
  for (let count = 0; count < 20; count++) guessCode(attempt, from(`network ${count}`));
  expect(guessCode(attempt, from("another"))).toBe(false);
  expect(guessCode(attempt, from("another", { device: "phone" }))).toBe(true);
  expect(guessCode(attempt, from("home", { isKnownNetwork: true }))).toBe(true);
});

test("a success without a code does not clear wrong codes", () => {
  const { attempt, from } = setUp();
  const session = from("home", { device: "session", isKnownNetwork: true });
  for (let count = 0; count < 10; count++) {
    expect(guessCode(attempt, session)).toBe(true);
    attempt(session).succeeded();
  }
  expect(guessCode(attempt, session)).toBe(false);
});

test("the right code clears wrong ones", () => {
  const { attempt, from } = setUp();
  const phone = from("home", { device: "phone" });
  const guess = (isRight: boolean) => {
    const pending = attempt(phone);
    pending.checksCode();
    if (isRight) pending.succeeded();
  };
  for (let count = 0; count < 30; count++) {
    guess(false);
    guess(false);
    guess(true);
  }
});
