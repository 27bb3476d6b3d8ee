import { expect } from "bun:test";
import type { Store } from "../../../src/store/store.ts";
import type { Check } from "./world.ts";

const historyId = (store: Store) => store.read((tx) => tx.historyId());

export function restoring(check: Check) {
  check("the history stays the same when it is opened again", async (world) => {
    const [alice] = await world.people("alice");
    await world.send(await world.group(alice), alice, "hello");
    const before = await historyId(world.store);
    expect(before).toMatch(/^[0-9a-f-]{36}$/);
    expect(await historyId(await world.reopen())).toBe(before);
  });

  check("another history can be begun, and stays", async (world) => {
    const before = await historyId(world.store);
    await world.store.write((tx) => tx.renewHistory());
    const after = await historyId(world.store);
    expect(after).not.toBe(before);
    expect(await historyId(await world.reopen())).toBe(after);
  });
}
