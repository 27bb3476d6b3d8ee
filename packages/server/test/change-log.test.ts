import { describe, expect, test } from "bun:test";
import { entryOf } from "../src/store/changes.ts";

describe("an entry of the change log", () => {
  const known = { kind: "event", delivery: "counted", to: { conversation: "one" }, later: [1] };
  const decoded = (...changes: object[]) =>
    entryOf({ id: 1, node: "other", body: JSON.stringify(changes) }).changes;

  test("keeps the fields that a newer version added", () => {
    expect(decoded(known) as object[]).toEqual([known]);
  });

  test("leaves out changes of kinds and deliveries that a newer version added", () => {
    const unknown = [{ kind: "person_waved" }, { kind: "toString" }];
    const undelivered = { ...known, delivery: "pigeon" };
    expect(decoded(...unknown, known, undelivered) as object[]).toEqual([known]);
  });
});
