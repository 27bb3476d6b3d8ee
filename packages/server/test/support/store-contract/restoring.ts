import { expect } from "bun:test";
import type { Store } from "../../../src/store/store.ts";
import type { Check } from "./fixture.ts";

const historyId = (store: Store) => store.read((tx) => tx.historyId());

export function restoring(check: Check) {
  check("a reopened store has the same history", async (fixture) => {
    const [alice] = await fixture.people("alice");
    await fixture.send(await fixture.group(alice), alice, "hello");
    const before = await historyId(fixture.store);
    expect(before).toMatch(/^[0-9a-f-]{36}$/);
    expect(await historyId(await fixture.reopen())).toBe(before);
  });

  check("a new history can be begun, and persists", async (fixture) => {
    const before = await historyId(fixture.store);
    await fixture.store.write((tx) => tx.renewHistory());
    const after = await historyId(fixture.store);
    expect(after).not.toBe(before);
    expect(await historyId(await fixture.reopen())).toBe(after);
  });
}
