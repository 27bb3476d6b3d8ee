import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { at, type Check, type Fixture, inSequence, nextTick, START, times } from "./fixture.ts";

export function sessions(check: Check) {
  const HOUR = 3_600_000;
  async function signedIn(fixture: Fixture) {
    const [alice, bob] = await fixture.people("alice", "bob");
    const ids = times(3).map(() => Bun.randomUUIDv7());
    await fixture.store.write((tx) =>
      inSequence(ids, (id, n) =>
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
      (await fixture.store.read((tx) => tx.sessions(account.id, now))).map(({ id }) =>
        ids.indexOf(id),
      );
    const find = (hash: string) => fixture.store.read((tx) => tx.session(hash));
    return { alice, bob, ids, list, find };
  }

  check("a session is found by the hash of its token, with its account", async (fixture) => {
    const { alice, ids, find } = await signedIn(fixture);
    expect(await find("hash 1")).toEqual({
      id: at(ids, 1),
      account: alice,
      created_at: START + 1,
      last_used_at: START + 1,
      expires_at: START + HOUR,
      fixed: false,
      ended_at: null,
    });
    expect(await find("hash 9")).toBeNull();
  });

  check("a session has a fixed end if it was opened with one", async (fixture) => {
    const { alice, find } = await signedIn(fixture);
    const session = { token_hash: "fixed", account_id: alice.id, user_agent: null, at: START };
    await fixture.store.write((tx) =>
      tx.insertSession({
        ...session,
        id: Bun.randomUUIDv7(),
        expires_at: START + HOUR,
        fixed: true,
      }),
    );
    expect(await find("fixed")).toMatchObject({ fixed: true, expires_at: START + HOUR });
  });

  check("active sessions are listed, most recently used first", async (fixture) => {
    const { alice, bob, ids, list } = await signedIn(fixture);
    expect(await list()).toEqual([2, 1, 0]);
    expect(await list(bob)).toEqual([]);
    await fixture.store.write((tx) => tx.touchSession(at(ids, 0), START + 50, START + 2 * HOUR));
    expect(await list()).toEqual([0, 2, 1]);
    expect(await list(alice, START + HOUR)).toEqual([0]);
    expect(await list(alice, START + 2 * HOUR)).toEqual([]);
    const [first] = await fixture.store.read((tx) => tx.sessions(alice.id, START));
    expect(first).toEqual({
      id: at(ids, 0),
      created_at: new Date(START).toISOString(),
      last_used_at: new Date(START + 50).toISOString(),
      user_agent: null,
    });
  });

  check("using a session extends it", async (fixture) => {
    const { ids, find } = await signedIn(fixture);
    await fixture.store.write((tx) => tx.touchSession(at(ids, 1), START + 7, START + 9 * HOUR));
    expect(await find("hash 1")).toMatchObject({
      last_used_at: START + 7,
      expires_at: START + 9 * HOUR,
    });
  });

  check("a session is confirmed by its sign-in, and again afterwards", async (fixture) => {
    const { ids } = await signedIn(fixture);
    const confirmedAt = (id: string) => fixture.store.read((tx) => tx.sessionConfirmedAt(id));
    await fixture.store.write((tx) => tx.confirmSession(at(ids, 1), START + 50));
    expect(await inSequence(ids, confirmedAt)).toEqual([START, START + 50, START + 2]);
    expect(await confirmedAt(Bun.randomUUIDv7())).toBeNull();
  });

  check("a session is ended once, and only by its account", async (fixture) => {
    const { alice, bob, ids, list, find } = await signedIn(fixture);
    const end = (account: AccountRecord, id: string) =>
      fixture.store.write((tx) => tx.endSession(id, account.id, START + 5));
    expect(await end(bob, at(ids, 1))).toBe(false);
    expect(await find("hash 1")).toMatchObject({ ended_at: null });
    expect(await end(alice, at(ids, 1))).toBe(true);
    expect(await find("hash 1")).toMatchObject({ ended_at: START + 5 });
    expect(await end(alice, at(ids, 1))).toBe(false);
    expect(await end(alice, Bun.randomUUIDv7())).toBe(false);
    expect(await list()).toEqual([2, 0]);
  });

  check("expired sessions are purged in batches, ended or not", async (fixture) => {
    const { alice, ids, find } = await signedIn(fixture);
    const purge = (before: number, most = 10) =>
      fixture.store.write((tx) => tx.purgeSessions(before, most));
    await fixture.store.write((tx) => tx.endSession(at(ids, 0), alice.id, START));
    await fixture.store.write((tx) => tx.touchSession(at(ids, 2), START, START + 2 * HOUR));
    expect(await purge(START + HOUR)).toBe(0);
    expect(await purge(START + HOUR + 1, 1)).toBe(1);
    expect(await purge(START + HOUR + 1)).toBe(1);
    expect(await purge(START + HOUR + 1)).toBe(0);
    expect(await find("hash 0")).toBeNull();
    expect(await find("hash 1")).toBeNull();
    expect(await find("hash 2")).toMatchObject({ id: at(ids, 2) });
  });

  check("a network is known for the account that signed in from it only", async (fixture) => {
    const { alice, bob } = await signedIn(fixture);
    const from = (account: AccountRecord, network: string) =>
      fixture.store.read((tx) => tx.signedInFrom(account.id, network));
    expect(await from(alice, "home")).toBe(false);
    await fixture.store.write((tx) =>
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

  check("concurrent inserts of one token make one session", async (fixture) => {
    const { alice, find } = await signedIn(fixture);
    const session = { token_hash: "same", account_id: alice.id, user_agent: null, at: START };
    const ids = times(2).map(() => Bun.randomUUIDv7());
    await Promise.all(
      ids.map((id) =>
        fixture.store.write((tx) => tx.insertSession({ ...session, id, expires_at: START + HOUR })),
      ),
    );
    expect(ids).toContain((await find("same"))?.id as string);
    expect(await fixture.store.read((tx) => tx.sessions(alice.id, START))).toHaveLength(4);
  });

  check("units that lock the same account take effect one after another", async (fixture) => {
    const { alice, ids } = await signedIn(fixture);
    const id = Bun.randomUUIDv7();
    const locked = Promise.withResolvers<void>();
    const opening = fixture.store.write(async (tx) => {
      await tx.lockCredentials(alice.id);
      locked.resolve();
      for (const _ of times(20)) await nextTick();
      const rest = { user_agent: null, at: START + 9, expires_at: START + HOUR };
      await tx.insertSession({ id, token_hash: "new", account_id: alice.id, ...rest });
    });
    await locked.promise;
    const found = fixture.store.write(async (tx) => {
      await tx.lockCredentials(alice.id);
      await tx.setPassword(alice.id, "changed");
      return (await tx.sessions(alice.id, START)).map((session) => session.id);
    });
    await opening;
    expect((await found).toSorted()).toEqual([...ids, id].toSorted());
    const { account, password_hash } = await fixture.store.write((tx) =>
      tx.lockCredentials(alice.id),
    );
    expect({ account, password_hash }).toEqual({ account: alice, password_hash: "changed" });
  });
}
