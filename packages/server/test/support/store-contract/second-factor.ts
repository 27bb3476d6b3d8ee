import { expect } from "bun:test";
import { type Check, START } from "./fixture.ts";

export function secondFactors(check: Check) {
  check("a secret can be replaced until it is confirmed", async ({ store, people }) => {
    const [{ id }] = await people("alice");
    const begin = (secret: string, at: number) =>
      store.write((tx) => tx.beginSecondFactor({ account_id: id, secret, at }));
    const confirm = (secret: string) =>
      store.write((tx) => tx.confirmSecondFactor({ account_id: id, secret, at: START + 2 }));
    const find = () => store.read((tx) => tx.secondFactor(id));
    expect(await find()).toBeNull();
    expect(await confirm("one")).toBe(false);
    expect(await begin("one", START)).toBe(true);
    expect(await begin("two", START + 1)).toBe(true);
    expect(await find()).toEqual({ account_id: id, secret: "two", confirmed_at: null });
    expect(await confirm("one")).toBe(false);
    expect(await confirm("two")).toBe(true);
    expect(await confirm("two")).toBe(false);
    expect(await begin("three", START + 3)).toBe(false);
    expect(await find()).toEqual({ account_id: id, secret: "two", confirmed_at: START + 2 });
  });

  check("a time step is used once, and none before it later", async ({ store, people }) => {
    const [alice, bob] = await people("alice", "bob");
    for (const { id } of [alice, bob]) {
      await store.write((tx) => tx.beginSecondFactor({ account_id: id, secret: "one", at: START }));
    }
    const use = (id: number, step: number) => store.write((tx) => tx.useTimeStep(id, step));
    const both = await Promise.all([use(alice.id, 60_000_001), use(alice.id, 60_000_001)]);
    expect(both.toSorted()).toEqual([false, true]);
    expect(await use(alice.id, 60_000_000)).toBe(false);
    expect(await use(alice.id, 60_000_002)).toBe(true);
    expect(await use(bob.id, 60_000_000)).toBe(true);
    expect(await use(bob.id + 100, 60_000_000)).toBe(false);
  });

  check("a recovery code is used once", async ({ store, people }) => {
    const [alice, bob] = await people("alice", "bob");
    const set = (id: number, ...hashes: string[]) =>
      store.write((tx) => tx.setRecoveryCodes(id, hashes));
    const use = (id: number, hash: string) => store.write((tx) => tx.useRecoveryCode(id, hash));
    const left = (id: number) => store.read((tx) => tx.recoveryCodesLeft(id));
    await set(alice.id, "one", "two", "three");
    await set(bob.id, "one");
    expect(await left(alice.id)).toBe(3);
    const both = await Promise.all([use(alice.id, "one"), use(alice.id, "one")]);
    expect(both.toSorted()).toEqual([false, true]);
    expect(await use(bob.id, "two")).toBe(false);
    expect([await left(alice.id), await left(bob.id)]).toEqual([2, 1]);
    await set(alice.id, "four");
    expect(await use(alice.id, "two")).toBe(false);
    expect(await left(alice.id)).toBe(1);
  });

  check("removing a second factor removes its recovery codes", async ({ store, people }) => {
    const [{ id }] = await people("alice");
    const remove = () => store.write((tx) => tx.removeSecondFactor(id));
    expect(await remove()).toBe(false);
    await store.write(async (tx) => {
      await tx.beginSecondFactor({ account_id: id, secret: "one", at: START });
      await tx.setRecoveryCodes(id, ["one"]);
    });
    expect(await remove()).toBe(true);
    expect(await store.read((tx) => tx.secondFactor(id))).toBeNull();
    expect(await store.read((tx) => tx.recoveryCodesLeft(id))).toBe(0);
  });

  check("a secret is resealed unless it has changed", async ({ store, people }) => {
    const [{ id }] = await people("alice");
    await store.write((tx) => tx.beginSecondFactor({ account_id: id, secret: "one", at: START }));
    const reseal = (secret: string, sealed: string) =>
      store.write((tx) => tx.resealSecondFactor({ account_id: id, secret }, sealed));
    await reseal("another", "wrong");
    await reseal("one", "two");
    const sealed = await store.read((tx) => tx.sealedSecondFactors());
    expect(sealed).toEqual([{ account_id: id, secret: "two" }]);
  });
}
