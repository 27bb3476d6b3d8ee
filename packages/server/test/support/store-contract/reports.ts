import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { NewReport, ReportQuery } from "../../../src/store/reports.ts";
import { type Check, type Fixture, START } from "./fixture.ts";

export function reports(check: Check) {
  const report = (
    { store }: Fixture,
    reporter: AccountRecord,
    sender: AccountRecord,
    message: Message,
    more: Partial<NewReport> = {},
  ) => {
    const id = Bun.randomUUIDv7();
    const fields = { id, at: START, reason: "spam", message, around: [], ...more };
    const made = { ...fields, reporter_id: reporter.id, sender_id: sender.id };
    return store.write(async (tx) => ((await tx.insertReport(made)) ? id : null));
  };
  const list = async ({ store }: Fixture, query: Partial<ReportQuery> = {}) =>
    (await store.read((tx) => tx.reports({ limit: 10, ...query }))).map(({ id }) => id);
  const publicOf = ({ username, kind, display_name, version }: AccountRecord) => ({
    username,
    kind,
    display_name,
    version,
  });

  check("a report keeps the message, and shows the accounts as they are now", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, bob, "rude");
    const around = [Bun.randomUUIDv7()];
    const id = await report(fixture, alice, bob, message, { around });
    await fixture.remove(message);
    const version = await fixture.store.write((tx) => tx.setDisplayName(bob.id, "Robert"));
    const found = await fixture.store.read((tx) => tx.report(id ?? ""));
    expect(found).toEqual({
      id: id ?? "",
      at: START,
      reporter: publicOf(alice),
      reason: "spam",
      message: { ...message, sender: { ...publicOf(bob), display_name: "Robert", version } },
      around,
      resolved_at: null,
      resolved_by: null,
      note: null,
    });
    expect(await fixture.store.read((tx) => tx.report(Bun.randomUUIDv7()))).toBeNull();
  });

  check("a report says that the sender is deleted", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const id = await report(fixture, alice, bob, await fixture.send(chat, bob, "rude"));
    await fixture.store.write((tx) => tx.eraseAccount(bob, { messages: true, at: START }));
    const found = await fixture.store.read((tx) => tx.report(id ?? ""));
    expect(found?.message).toMatchObject({ content: "rude", sender: { deleted: true } });
    expect(found?.reporter).toEqual(publicOf(alice));
  });

  check("a person reports a message once", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    const chat = await fixture.group(alice, bob, carol);
    const message = await fixture.send(chat, bob, "rude");
    const first = await report(fixture, alice, bob, message);
    expect(await report(fixture, alice, bob, message, { reason: "again" })).toBeNull();
    const second = await report(fixture, carol, bob, message);
    expect(await list(fixture)).toEqual([second ?? "", first ?? ""]);
  });

  check("reports are resolved once, and listed by that and in pages", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const ids: string[] = [];
    for (const text of ["one", "two", "three"]) {
      const message = await fixture.send(chat, bob, text);
      ids.push((await report(fixture, alice, bob, message)) ?? "");
    }
    const [one = "", two = "", three = ""] = ids;
    const resolve = (id: string, note: string | null) =>
      fixture.store.write((tx) => tx.resolveReport(id, { at: START + 1, by: "olga", note }));
    expect(await resolve(two, "warned")).toBe(true);
    expect(await resolve(two, null)).toBe(false);
    expect(await resolve(Bun.randomUUIDv7(), null)).toBe(false);
    expect(await fixture.store.read((tx) => tx.report(two))).toMatchObject({
      resolved_at: START + 1,
      resolved_by: "olga",
      note: "warned",
    });
    expect(await list(fixture)).toEqual([three, two, one]);
    expect(await list(fixture, { resolved: false })).toEqual([three, one]);
    expect(await list(fixture, { resolved: true })).toEqual([two]);
    expect(await list(fixture, { limit: 2 })).toEqual([three, two]);
    expect(await list(fixture, { limit: 2, before: two })).toEqual([one]);
  });

  check(
    "reports that were resolved long ago are pruned in batches, open ones never",
    async (fixture) => {
      const [alice, bob] = await fixture.people("alice", "bob");
      const chat = await fixture.group(alice, bob);
      const ids: string[] = [];
      for (const text of ["one", "two", "three", "four"]) {
        const message = await fixture.send(chat, bob, text);
        ids.push((await report(fixture, alice, bob, message)) ?? "");
      }
      const [open = "", ...resolved] = ids;
      for (const id of resolved) {
        const resolution = { at: START, by: "olga", note: null };
        await fixture.store.write((tx) => tx.resolveReport(id, resolution));
      }
      const prune = (before: number) => fixture.store.write((tx) => tx.pruneReports(before, 2));
      expect(await prune(START)).toBe(0);
      expect(await prune(START + 1)).toBe(2);
      expect(await prune(START + 1)).toBe(1);
      expect(await list(fixture)).toEqual([open]);
    },
  );

  check("reports are listed by who made them", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const chat = await fixture.group(alice, bob);
    const message = await fixture.send(chat, bob, "rude");
    const own = await fixture.send(chat, alice, "rude too");
    const id = await report(fixture, alice, bob, message);
    await report(fixture, bob, alice, own);
    expect(await list(fixture, { reporterId: alice.id })).toEqual([id ?? ""]);
    expect(await list(fixture, { reporterId: alice.id, before: id ?? "" })).toEqual([]);
  });
}
