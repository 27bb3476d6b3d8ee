import { expect } from "bun:test";
import type { AuditQuery, NewAuditEntry } from "../../../src/store/audit-log.ts";
import { type Check, type Fixture, inSequence, START } from "./fixture.ts";

export function auditLog(check: Check) {
  const entry = (more: Partial<NewAuditEntry> = {}): NewAuditEntry => ({
    at: START,
    action: "sign_in",
    account: "alice",
    details: {},
    ...more,
  });
  const add = ({ store }: Fixture, ...entries: NewAuditEntry[]) =>
    store.write((tx) => inSequence(entries, (each) => tx.insertAuditEntry(each)));
  const list = ({ store }: Fixture, query: Partial<AuditQuery> = {}) =>
    store.read((tx) => tx.auditLog({ limit: 10, ...query }));

  check("entries are listed newest first, with all of their fields", async (fixture) => {
    const details = { address: "::1", user_agent: null, sessions_ended: 2, works: true };
    await add(fixture, entry({ account: null, action: "sign_in_failed" }), entry({ details }));
    expect(await list(fixture)).toEqual([
      { id: expect.any(Number), at: START, action: "sign_in", account: "alice", details },
      { id: expect.any(Number), at: START, action: "sign_in_failed", account: null, details: {} },
    ]);
  });

  check("entries are found by action, account and time, and in pages", async (fixture) => {
    await add(
      fixture,
      entry({ at: START + 1 }),
      entry({ at: START + 2, account: "bob" }),
      entry({ at: START + 3, action: "sign_up" }),
      entry({ at: START + 4, account: "bob", action: "sign_up" }),
    );
    const times = async (query: Partial<AuditQuery>) =>
      (await list(fixture, query)).map(({ at }) => at - START);
    expect(await times({ action: "sign_up" })).toEqual([4, 3]);
    expect(await times({ account: "bob" })).toEqual([4, 2]);
    expect(await times({ account: "bob", action: "sign_in" })).toEqual([2]);
    expect(await times({ since: START + 3 })).toEqual([4, 3]);
    expect(await times({ account: "alice", since: START + 2 })).toEqual([3]);
    expect(await times({ account: "carol" })).toEqual([]);
    const page = await list(fixture, { limit: 2 });
    expect(page.map(({ at }) => at - START)).toEqual([4, 3]);
    const next = page.at(-1)?.id ?? 0;
    expect(await times({ limit: 2, before: next })).toEqual([2, 1]);
  });

  check("an entry is stored exactly when its unit of work is", async (fixture) => {
    const fails = fixture.store.write(async (tx) => {
      await tx.insertAuditEntry(entry());
      throw new Error("the unit fails");
    });
    expect(await fails.catch(({ message }: Error) => message)).toBe("the unit fails");
    expect(await list(fixture)).toEqual([]);
  });

  check("old entries are pruned in batches", async (fixture) => {
    const entries = [1, 2, 3, 4].map((n) => entry({ at: START + n }));
    await add(fixture, ...entries);
    const prune = (before: number, most = 10) =>
      fixture.store.write((tx) => tx.pruneAuditLog(before, most));
    expect(await prune(START + 4, 2)).toBe(2);
    expect(await prune(START + 4, 2)).toBe(1);
    expect(await prune(START + 4)).toBe(0);
    expect((await list(fixture)).map(({ at }) => at)).toEqual([START + 4]);
  });
}
