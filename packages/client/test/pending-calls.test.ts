import { expect, test } from "bun:test";
import { MESSAGE_TOO_BIG } from "../src/connection/close-codes.ts";
import { PendingCalls } from "../src/connection/pending-calls.ts";
import { codeOf } from "./support/clients.ts";

test("of two calls the one with more bytes is too large, even if it has fewer characters", async () => {
  const calls = new PendingCalls();
  const send = (content: string) =>
    codeOf(
      calls.send("sendMessage", { content }, { send() {}, timeoutMs: 60_000, onTimeout() {} }),
    );
  const codes = [send("x".repeat(200)), send("€".repeat(100)), send("x")];
  calls.rejectAll(MESSAGE_TOO_BIG, new Error("closed"));
  expect(await Promise.all(codes)).toEqual(["unavailable", "payload_too_large", "unavailable"]);
});
