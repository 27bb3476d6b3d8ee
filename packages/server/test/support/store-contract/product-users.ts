import { expect } from "bun:test";
import type { NewAccount } from "../../../src/store/accounts.ts";
import { type Check, newAccount, START, times } from "./fixture.ts";

export function productUsers(check: Check) {
  const user = (n: number, more: Partial<NewAccount> = {}): NewAccount => ({
    username: `user_${n}`,
    kind: "human",
    display_name: `User ${n}`,
    external_id: `id ${n}`,
    at: START,
    ...more,
  });
  const byName = <Each extends { username: string }>(list: readonly Each[]) =>
    list.toSorted((one, other) => (one.username < other.username ? -1 : 1));

  check("many accounts are inserted at once, and found like any other", async ({ store }) => {
    const made = await store.write((tx) => tx.insertAccounts(times(500).map((n) => user(n))));
    expect(made).toHaveLength(500);
    const [first] = byName(made);
    expect(first).toMatchObject({ username: "user_0", kind: "human", owner_id: null });
    expect(await store.read((tx) => tx.account("user_0"))).toEqual(first as never);
    const query = { viewerId: first?.id ?? 0, query: "user 49", limit: 100 };
    const found = await store.read((tx) => tx.findAccounts(query));
    expect(found.map(({ username }) => username)).toContain("user_499");
    expect(await store.write((tx) => tx.insertAccounts([]))).toEqual([]);
  });

  check("accounts whose username or external id is taken are left out", async ({ store }) => {
    await store.write((tx) => newAccount(tx, { username: "user_1", external_id: "id 2" }));
    const made = await store.write((tx) => tx.insertAccounts([1, 2, 3].map((n) => user(n))));
    expect(made.map(({ username }) => username)).toEqual(["user_3"]);
    expect(await store.read((tx) => tx.account("user_2"))).toBeNull();
  });

  check("users are found by their external ids, with their metadata", async ({ store }) => {
    const metadata = { plan: "gold", größe: "" };
    await store.write((tx) => tx.insertAccounts([user(1, { metadata }), user(2)]));
    const find = async () =>
      byName(await store.read((tx) => tx.productAccounts(["id 1", "id 2", "id 3", "ID 1"])));
    const found = await find();
    expect(found).toMatchObject([
      { username: "user_1", external_id: "id 1", metadata },
      { username: "user_2", external_id: "id 2", metadata: null },
    ]);
    await store.write((tx) => tx.setMetadata(found[1]?.id ?? 0, { plan: "free" }));
    expect((await find())[1]).toMatchObject({ metadata: { plan: "free" } });
    expect((await find())[0]).toMatchObject({ metadata });
  });
}
