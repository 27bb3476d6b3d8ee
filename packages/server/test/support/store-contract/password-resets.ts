import { expect } from "bun:test";
import { type Check, START } from "./fixture.ts";

export function passwordResets(check: Check) {
  check("an account has one reset link, until it is removed", async ({ store, people }) => {
    const [alice, bob] = await people("alice", "bob");
    const set = (account_id: number, token_hash: string, expires_at: number) =>
      store.write((tx) => tx.setPasswordReset({ account_id, token_hash, expires_at }));
    const find = (hash: string) => store.read((tx) => tx.passwordReset(hash));
    expect(await find("one")).toBeNull();
    await set(alice.id, "one", START + 1);
    await set(bob.id, "two", START + 2);
    expect(await find("one")).toMatchObject({ account: { id: alice.id }, expires_at: START + 1 });
    await set(alice.id, "three", START + 3);
    expect(await find("one")).toBeNull();
    expect(await find("three")).toMatchObject({ account: { id: alice.id }, expires_at: START + 3 });
    await store.write((tx) => tx.removePasswordReset(alice.id));
    await store.write((tx) => tx.removePasswordReset(alice.id));
    expect(await find("three")).toBeNull();
    expect(await find("two")).toMatchObject({ account: { id: bob.id }, expires_at: START + 2 });
  });
}
