import { expect } from "bun:test";
import { type Check, newAccount, START } from "./fixture.ts";

export function serviceKeys(check: Check) {
  check("a key is found by its hash until it is revoked", async ({ store }) => {
    const insert = (name: string, key_hash: string) =>
      store.write((tx) => tx.insertServiceKey({ name, key_hash, at: START }));
    const find = (hash: string) => store.read((tx) => tx.serviceKey(hash));
    const revoke = (name: string) => store.write((tx) => tx.revokeServiceKey(name, START + 2));
    expect(await insert("shop", "hash 1")).toBe(true);
    expect(await insert("blog", "hash 2")).toBe(true);
    const unused = { created_at: START, last_used_at: null, revoked_at: null };
    expect(await find("hash 1")).toEqual({ name: "shop", ...unused });
    expect(await find("hash 3")).toBeNull();
    await store.write((tx) => tx.touchServiceKey("shop", START + 1));
    expect(await revoke("shop")).toBe(true);
    expect(await revoke("shop")).toBe(false);
    expect(await revoke("unknown")).toBe(false);
    expect(await find("hash 1")).toBeNull();
    expect(await store.read((tx) => tx.serviceKeys())).toEqual([
      { name: "blog", ...unused },
      { name: "shop", created_at: START, last_used_at: START + 1, revoked_at: START + 2 },
    ]);
  });

  check("the name of a revoked key stays taken", async ({ store }) => {
    const insert = (key_hash: string) =>
      store.write((tx) => tx.insertServiceKey({ name: "shop", key_hash, at: START }));
    expect(await insert("hash 1")).toBe(true);
    await store.write((tx) => tx.revokeServiceKey("shop", START));
    expect(await insert("hash 2")).toBe(false);
    expect(await store.read((tx) => tx.serviceKey("hash 2"))).toBeNull();
  });

  check("an external id belongs to one account", async ({ store }) => {
    const made = await store.write((tx) =>
      newAccount(tx, { username: "alice", external_id: "Kunde 7" }),
    );
    const find = (id: string) => store.read((tx) => tx.accountByExternalId(id));
    expect(await find("Kunde 7")).toEqual(made);
    expect(await find("kunde 7")).toBeNull();
    const other = { username: "bob", kind: "human", display_name: "Bob", at: START } as const;
    const insert = (external_id: string) =>
      store.write((tx) => tx.insertAccount({ ...other, external_id }));
    expect(await insert("Kunde 7")).toBeNull();
    expect(await store.read((tx) => tx.account("bob"))).toBeNull();
    expect(await insert("Kunde 8")).toMatchObject({ username: "bob" });
  });
}
