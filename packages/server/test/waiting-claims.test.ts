import { expect, test } from "bun:test";
import { WaitingClaims } from "../src/agents/external/waiting-claims.ts";
import type { AgentCaller } from "../src/security/caller.ts";

const callerOf = (username: string) =>
  ({ kind: "agent", account: { username }, token_id: username }) as AgentCaller;

const { signal } = new AbortController();

test("the programs of all agents of a person share the calls that may wait", () => {
  const claims = new WaitingClaims();
  const waiting = Array.from({ length: 64 }, (_, place) =>
    claims.open(callerOf(place % 2 === 0 ? "ada:one" : "ada:two"), signal),
  );
  expect(() => claims.open(callerOf("ada:three"), signal)).toThrow("too many calls wait");
  using _ = claims.open(callerOf("adam:one"), signal);
  for (const claim of waiting) claim[Symbol.dispose]();
  using __ = claims.open(callerOf("ada:three"), signal);
});

test("a turn wakes the programs of its agent alone", async () => {
  const claims = new WaitingClaims();
  using one = claims.open(callerOf("ada:one"), signal);
  using two = claims.open(callerOf("ada:two"), signal);
  claims.wake("ada:one");
  expect(await one.wait(60_000)).toBe(true);
  claims.end(() => true);
  expect(await two.wait(60_000)).toBe(false);
});

test("a call that was ended is not woken by a turn of the same moment", async () => {
  const claims = new WaitingClaims();
  using early = claims.open(callerOf("ada:one"), signal);
  using waiting = claims.open(callerOf("ada:one"), signal);
  const waited = waiting.wait(60_000);
  claims.end(() => true);
  claims.wake("ada:one");
  expect(await waited).toBe(false);
  expect(await early.wait(60_000)).toBe(false);
});
