import { expect } from "bun:test";
import { type Check, START } from "./fixture.ts";

export function operators(check: Check) {
  check("an account is an operator from when it is added until it is removed", async (fixture) => {
    const [bob, alice] = await fixture.people("bob", "alice");
    const { store } = fixture;
    const is = (id: number) => store.read((tx) => tx.isOperator(id));
    const add = (id: number) => store.write((tx) => tx.addOperator(id, START));
    const remove = (id: number) => store.write((tx) => tx.removeOperator(id));
    expect(await is(alice.id)).toBe(false);
    expect(await add(bob.id)).toBe(true);
    expect(await add(alice.id)).toBe(true);
    expect(await add(alice.id)).toBe(false);
    expect(await is(alice.id)).toBe(true);
    expect(await store.read((tx) => tx.operators())).toEqual([alice, bob]);
    expect(await remove(alice.id)).toBe(true);
    expect(await remove(alice.id)).toBe(false);
    expect(await is(alice.id)).toBe(false);
    expect(await store.read((tx) => tx.operators())).toEqual([bob]);
  });
}
