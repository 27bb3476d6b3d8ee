import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { alone } from "../src/realtime/cluster.ts";
import { Failure } from "../src/rules/failure.ts";
import { type Attempt, signInGuard } from "../src/security/sign-in-guard.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function guard() {
  const { attempt } = signInGuard((name) => ({ cluster: alone, name }));
  const from = (network: string, rest: Partial<Attempt> = {}): Attempt => ({
    username: "alice",
    network,
    isKnownNetwork: false,
    device: null,
    ...rest,
  });
  const isLetIn = (given: Attempt) => {
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
  return { attempt, from, isLetIn, fail };
}

test("a network waits after five failures for a username, other networks do not", () => {
  const { from, isLetIn, fail } = guard();
  fail(from("here"), 5);
  expect(isLetIn(from("here"))).toBe(false);
  expect(isLetIn(from("here", { username: "bob" }))).toBe(true);
  expect(isLetIn(from("elsewhere"))).toBe(true);
});

test("a username that is guessed at from everywhere makes only those wait who are new", () => {
  const { from, isLetIn, fail } = guard();
  for (let count = 0; count < 100; count++) fail(from(`network ${count}`));
  expect(isLetIn(from("another"))).toBe(false);
  expect(isLetIn(from("home", { isKnownNetwork: true }))).toBe(true);
  expect(isLetIn(from("another", { device: "phone" }))).toBe(true);
});

test("a device counts its own failures alone, whatever network it is in", () => {
  const { from, isLetIn, fail } = guard();
  fail(from("cafe"), 5);
  expect(isLetIn(from("cafe", { device: "phone" }))).toBe(true);
  fail(from("cafe", { device: "phone" }), 5);
  expect(isLetIn(from("home", { device: "phone" }))).toBe(false);
  expect(isLetIn(from("home", { device: "laptop" }))).toBe(true);
});

test("however many devices somebody has, guesses with all of them together are slowed down", () => {
  const { from, isLetIn, fail } = guard();
  for (let count = 0; count < 100; count++) fail(from("here", { device: `device ${count}` }));
  expect(isLetIn(from("here", { device: "one more" }))).toBe(false);
});

test("an attempt that is refused is counted nowhere", () => {
  const { attempt, from, fail } = guard();
  for (let count = 0; count < 100; count++) fail(from("here", { username: `user ${count}` }));
  for (let count = 0; count < 200; count++) {
    expect(() => attempt(from("here"))).toThrow("too many failed attempts");
  }
  // Otherwise the username would have reached its own limit now.
  attempt(from("elsewhere")).succeeded();
});

test("success forgets the failures of that network for that username", () => {
  const { attempt, from, isLetIn, fail } = guard();
  fail(from("here"), 4);
  attempt(from("here")).succeeded();
  fail(from("here"), 4);
  expect(isLetIn(from("here"))).toBe(true);
});
