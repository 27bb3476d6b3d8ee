import { afterEach, beforeEach, expect, jest, spyOn, test } from "bun:test";
import { Connection } from "../src/connection/connection.ts";
import type { WebSocketClass } from "../src/index.ts";
import { ann } from "./support/records.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** A connection to a service that says hello and closes each socket after the given time. */
function connectionThatLasts(lastsMs: number) {
  const attemptedAt: number[] = [];
  const WebSocket = class {
    readonly readyState = 1;
    addEventListener(type: string, listener: (event: never) => void) {
      const hello = { method: "events.hello", params: ann };
      const emit = (event: object) => (listener as (event: object) => void)(event);
      if (type === "message") setTimeout(() => emit({ data: JSON.stringify(hello) }), 1);
      if (type === "close") setTimeout(() => emit({ code: 1012 }), 1 + lastsMs);
    }
    constructor() {
      attemptedAt.push(Date.now());
    }
    send() {}
    close() {}
  } as WebSocketClass;
  const ignore = () => {};
  const connection = new Connection({
    url: "http://parley.example",
    timeoutMs: 20_000,
    backoff: { min: 500, max: 4000 },
    WebSocket,
    token: () => "token",
    onOpen: ignore,
    onEvent: ignore,
    onLost: ignore,
    onAttemptFailed: ignore,
    onTokenRejected: ignore,
  });
  /** The delays between the end of each socket and the next attempt. */
  const delays = () =>
    attemptedAt.slice(1).map((at, index) => at - (attemptedAt[index] ?? 0) - 1 - lastsMs);
  return { connection, delays };
}

test("the delay grows while connections end soon after they were made", () => {
  using _ = spyOn(Math, "random").mockReturnValue(1);
  const { connection, delays } = connectionThatLasts(10);
  connection.start();
  jest.advanceTimersByTime(12_000);
  connection.stop();
  expect(delays()).toEqual([1000, 2000, 4000, 4000]);
});

test("the delay is short again after a connection that lasted", () => {
  using _ = spyOn(Math, "random").mockReturnValue(1);
  const { connection, delays } = connectionThatLasts(20_000);
  connection.start();
  jest.advanceTimersByTime(70_000);
  connection.stop();
  expect(delays()).toEqual([1000, 1000, 1000]);
});
