import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { type Check, type Fixture, START } from "./fixture.ts";

export function presence(check: Check) {
  const among = async (
    { store }: Fixture,
    { username }: AccountRecord,
    ...others: { username: string }[]
  ) => {
    const names = others.map((each) => each.username);
    const found = await store.read((tx) => tx.presenceAmong(username, names));
    return found.map((each) => each.username).sort();
  };
  const note = ({ store }: Fixture, ...seen: { username: string; at: number }[]) =>
    store.write((tx) => tx.noteLastSeen(seen));

  check("people who share a conversation are told of each other", async (fixture) => {
    const [alice, bob, carol, dave] = await fixture.people("alice", "bob", "carol", "dave");
    await fixture.group(alice, bob);
    await fixture.group(bob, alice, carol);
    const nobody = { username: "nobody" };
    expect(await among(fixture, alice, bob, nobody, dave, carol, alice)).toEqual(["bob", "carol"]);
    expect(await among(fixture, dave, alice, bob)).toEqual([]);
    expect(await among(fixture, alice)).toEqual([]);
  });

  check("a block, by either of them, and hiding end it for both", async (fixture) => {
    const { store } = fixture;
    const [alice, bob] = await fixture.people("alice", "bob");
    await fixture.group(alice, bob);
    const both = async () => [
      ...(await among(fixture, alice, bob)),
      ...(await among(fixture, bob, alice)),
    ];
    expect(await both()).toEqual(["bob", "alice"]);
    await store.write((tx) => tx.block(alice.id, bob.id, START));
    expect(await both()).toEqual([]);
    await store.write((tx) => tx.unblock(alice.id, bob.id));
    await store.write((tx) => tx.setPresence(bob.id, "hidden"));
    expect(await store.read((tx) => tx.presenceSetting(bob.id))).toBe("hidden");
    expect(await both()).toEqual([]);
    await store.write((tx) => tx.setPresence(bob.id, "visible"));
    expect(await store.read((tx) => tx.presenceSetting(alice.id))).toBe("visible");
    expect(await both()).toEqual(["bob", "alice"]);
  });

  check("the latest time at which somebody was seen is kept", async (fixture) => {
    const { store } = fixture;
    const [alice, bob] = await fixture.people("alice", "bob");
    await fixture.group(alice, bob);
    const seen = async () => (await store.read((tx) => tx.presenceAmong("alice", ["bob"])))[0];
    expect(await seen()).toEqual({ username: "bob", seen_at: null, own_seen_at: null });
    await note(fixture, { username: "bob", at: 20 }, { username: "nobody", at: 90 });
    await note(fixture, { username: "alice", at: 30 }, { username: "bob", at: 10 });
    expect(await seen()).toEqual({ username: "bob", seen_at: 20, own_seen_at: 30 });
    await note(fixture, { username: "bob", at: 40 });
    expect(await seen()).toEqual({ username: "bob", seen_at: 40, own_seen_at: 30 });
    await store.write((tx) => tx.eraseAccount(bob, { messages: false, at: START }));
    await note(fixture, { username: "bob", at: 50 });
    expect(await seen()).toBeUndefined();
  });
}
