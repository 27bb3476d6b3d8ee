import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { at, type Check, inTurn, START, times, type World } from "./world.ts";

export function sessions(check: Check) {
  const HOUR = 3_600_000;
  async function signedIn(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const ids = times(3).map(() => Bun.randomUUIDv7());
    await world.store.write((tx) =>
      inTurn(ids, (id, n) =>
        tx.insertSession({
          id,
          token_hash: `hash ${n}`,
          account_id: alice.id,
          user_agent: n === 0 ? null : `browser ${n}`,
          at: START + n,
          expires_at: START + HOUR,
        }),
      ),
    );
    const list = async (account = alice, now = START) =>
      (await world.store.read((tx) => tx.sessions(account.id, now))).map(({ id }) =>
        ids.indexOf(id),
      );
    const find = (hash: string) => world.store.read((tx) => tx.session(hash));
    return { alice, bob, ids, list, find };
  }

  check("a session is found by its token's hash, with its account", async (world) => {
    const { alice, ids, find } = await signedIn(world);
    expect(await find("hash 1")).toEqual({
      id: at(ids, 1),
      account: alice,
      created_at: START + 1,
      last_used_at: START + 1,
      expires_at: START + HOUR,
      ended_at: null,
    });
    expect(await find("hash 9")).toBeNull();
  });

  check("those that still work are listed, the most recently used first", async (world) => {
    const { alice, bob, ids, list } = await signedIn(world);
    expect(await list()).toEqual([2, 1, 0]);
    expect(await list(bob)).toEqual([]);
    await world.store.write((tx) => tx.touchSession(at(ids, 0), START + 50, START + 2 * HOUR));
    expect(await list()).toEqual([0, 2, 1]);
    expect(await list(alice, START + HOUR)).toEqual([0]);
    expect(await list(alice, START + 2 * HOUR)).toEqual([]);
    const [first] = await world.store.read((tx) => tx.sessions(alice.id, START));
    expect(first).toEqual({
      id: at(ids, 0),
      created_at: new Date(START).toISOString(),
      last_used_at: new Date(START + 50).toISOString(),
      user_agent: null,
    });
  });

  check("using one moves its end", async (world) => {
    const { ids, find } = await signedIn(world);
    await world.store.write((tx) => tx.touchSession(at(ids, 1), START + 7, START + 9 * HOUR));
    expect(await find("hash 1")).toMatchObject({
      last_used_at: START + 7,
      expires_at: START + 9 * HOUR,
    });
  });

  check("one can be ended once, by its own account", async (world) => {
    const { alice, bob, ids, list, find } = await signedIn(world);
    const end = (account: AccountRecord, id: string) =>
      world.store.write((tx) => tx.endSession(id, account.id, START + 5));
    expect(await end(bob, at(ids, 1))).toBe(false);
    expect(await find("hash 1")).toMatchObject({ ended_at: null });
    expect(await end(alice, at(ids, 1))).toBe(true);
    expect(await find("hash 1")).toMatchObject({ ended_at: START + 5 });
    expect(await end(alice, at(ids, 1))).toBe(false);
    expect(await end(alice, Bun.randomUUIDv7())).toBe(false);
    expect(await list()).toEqual([2, 0]);
  });

  check("those that have expired are purged, a few at a time, ended or not", async (world) => {
    const { alice, ids, find } = await signedIn(world);
    const purge = (before: number, most = 10) =>
      world.store.write((tx) => tx.purgeSessions(before, most));
    await world.store.write((tx) => tx.endSession(at(ids, 0), alice.id, START));
    await world.store.write((tx) => tx.touchSession(at(ids, 2), START, START + 2 * HOUR));
    expect(await purge(START + HOUR)).toBe(0);
    expect(await purge(START + HOUR + 1, 1)).toBe(1);
    expect(await purge(START + HOUR + 1)).toBe(1);
    expect(await purge(START + HOUR + 1)).toBe(0);
    expect(await find("hash 0")).toBeNull();
    expect(await find("hash 1")).toBeNull();
    expect(await find("hash 2")).toMatchObject({ id: at(ids, 2) });
  });

  check("a network is known to the account that signed in from it, to no other", async (world) => {
    const { alice, bob } = await signedIn(world);
    const from = (account: AccountRecord, network: string) =>
      world.store.read((tx) => tx.signedInFrom(account.id, network));
    expect(await from(alice, "home")).toBe(false);
    await world.store.write((tx) =>
      tx.insertSession({
        id: Bun.randomUUIDv7(),
        token_hash: "from home",
        account_id: alice.id,
        user_agent: null,
        network: "home",
        at: START,
        expires_at: START + HOUR,
      }),
    );
    expect(await from(alice, "home")).toBe(true);
    expect(await from(alice, "elsewhere")).toBe(false);
    expect(await from(bob, "home")).toBe(false);
  });

  check("a token that is remembered twice at the same time has one session", async (world) => {
    const { alice, find } = await signedIn(world);
    const session = { token_hash: "same", account_id: alice.id, user_agent: null, at: START };
    const ids = times(2).map(() => Bun.randomUUIDv7());
    await Promise.all(
      ids.map((id) =>
        world.store.write((tx) => tx.insertSession({ ...session, id, expires_at: START + HOUR })),
      ),
    );
    expect(ids).toContain((await find("same"))?.id as string);
    expect(await world.store.read((tx) => tx.sessions(alice.id, START))).toHaveLength(4);
  });
}
