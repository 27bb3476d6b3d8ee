import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { pause } from "../src/async/retry.ts";

test("a finished pause leaves no listener on its signal", async () => {
  const { signal } = new AbortController();
  for (let times = 0; times < 3; times++) await pause(1, signal);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a pause ends when its signal is aborted", async () => {
  const stop = new AbortController();
  const paused = pause(1_000_000, stop.signal);
  stop.abort();
  expect(await paused).toBeUndefined();
});
