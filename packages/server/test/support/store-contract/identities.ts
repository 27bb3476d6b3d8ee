import { expect } from "bun:test";
import { createOidcAccounts } from "../../../src/domain/oidc-accounts.ts";
import { createLogger } from "../../../src/observe/log.ts";
import { createAuditLog } from "../../../src/security/audit-log.ts";
import { type Check, START } from "./fixture.ts";

export function identities(check: Check) {
  const ISSUER = "https://id.example.com";

  check("an identity stays with the account that it was linked to first", async (fixture) => {
    const [alice, bob] = await fixture.people("alice", "bob");
    const link = (account_id: number, issuer = ISSUER) =>
      fixture.store.write((tx) =>
        tx.insertIdentity({ issuer, subject: "1", account_id, at: START }),
      );
    const find = (issuer: string, subject: string) =>
      fixture.store.read((tx) => tx.identity(issuer, subject));
    expect(await find(ISSUER, "1")).toBeNull();
    expect(await link(alice.id)).toBe(true);
    expect(await link(bob.id)).toBe(false);
    expect(await link(bob.id, "https://other.example.com")).toBe(true);
    expect(await find(ISSUER, "1")).toEqual(alice);
    expect(await find("https://other.example.com", "1")).toEqual(bob);
    expect(await find(ISSUER, "2")).toBeNull();
  });

  check("only a person without password, identity and external id is unlinked", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const find = (username: string) => fixture.store.read((tx) => tx.unlinkedAccount(username));
    const [secured] = await fixture.people("secured");
    await fixture.store.write((tx) => tx.setPassword(secured.id, "hash"));
    expect(await find("alice")).toEqual(alice);
    expect(await find("secured")).toBeNull();
    expect(await find("nobody")).toBeNull();
    await fixture.store.write((tx) =>
      tx.insertAccount({
        username: "customer",
        display_name: "Customer",
        kind: "human",
        external_id: "42",
        at: START,
      }),
    );
    expect(await find("customer")).toBeNull();
    await fixture.store.write((tx) =>
      tx.insertIdentity({ issuer: ISSUER, subject: "1", account_id: alice.id, at: START }),
    );
    expect(await find("alice")).toBeNull();
  });

  check("of two identities that sign in at once, one is linked to an account", async (fixture) => {
    const { store } = fixture;
    const accounts = createOidcAccounts({
      audit: createAuditLog(createLogger("silent"), store),
      providers: new Map(),
      operators: [],
    });
    const origin = { address: "192.0.2.1", network: "192.0.2.1", user_agent: null };
    const usernames = ["alice", "bob", "carol", "dave", "erin"] as const;
    await fixture.people(...usernames);
    const signIn = (requestedName: string, subject: string) =>
      accounts.signIn(
        { issuer: ISSUER, subject, requestedName, display_name: null },
        origin,
        async (_, { id }) => ({ session_id: subject, result: id }),
      );
    const signedIn = await Promise.all(
      usernames.flatMap((name) => [signIn(name, `${name} 1`), signIn(name, `${name} 2`)]),
    );
    expect(new Set(signedIn).size).toBe(signedIn.length);
  });
}
