import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { ReadTx } from "../../../src/store/store.ts";
import {
  at,
  type Check,
  type Fixture,
  inSequence,
  newAccount,
  newAgent,
  START,
  times,
} from "./fixture.ts";

export function accounts(check: Check) {
  check("an account is found by its username, with its private fields", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
    expect(alice).toEqual({
      id: expect.any(Number),
      username: "alice",
      kind: "human",
      display_name: "alice",
      version: 0,
      owner_id: null,
      provider: null,
      suspended_at: null,
      erased_at: null,
    });
    expect(agent).toMatchObject({ kind: "agent", owner_id: alice.id, provider: "claude" });
    expect(await store.read((tx) => tx.account("alice"))).toEqual(alice);
    expect(await store.read((tx) => tx.account("alice:claude"))).toEqual(agent);
    expect(await store.read((tx) => tx.account("Alice"))).toBeNull();
    expect(await store.read((tx) => tx.account("nobody"))).toBeNull();
  });

  check("a username is given to one account, also under concurrent inserts", async (fixture) => {
    const asked = times(10).map(() =>
      fixture.store.write((tx) =>
        tx.insertAccount({ username: "alice", kind: "human", display_name: "A", at: START }),
      ),
    );
    const made = (await Promise.all(asked)).filter((account) => account !== null);
    expect(made).toHaveLength(1);
    expect(await fixture.store.read((tx) => tx.account("alice"))).toEqual(made[0] ?? null);
  });

  check("accounts are found by a list of usernames; unknown ones are left out", async (fixture) => {
    const made = await fixture.people("alice", "bob", "carol");
    const found = await fixture.store.read((tx) => tx.accounts(["carol", "nobody", "alice"]));
    expect(byName(found)).toEqual([at(made, 0), at(made, 2)]);
    expect(await fixture.store.read((tx) => tx.accounts([]))).toEqual([]);
  });

  check("credentials have the password hash, or null", async (fixture) => {
    const { store } = fixture;
    const account = await store.write((tx) =>
      newAccount(tx, { username: "alice", password_hash: "hash" }),
    );
    const agent = await store.write((tx) => newAgent(tx, account, "gpt"));
    const credentials = (username: string) => store.read((tx) => tx.credentials(username));
    expect(await credentials("alice")).toEqual({ account, password_hash: "hash" });
    expect(await credentials("alice:gpt")).toEqual({ account: agent, password_hash: null });
    expect(await credentials("nobody")).toBeNull();
  });

  check(
    "a new name has a version, and is found by members of shared conversations",
    async (fixture) => {
      const { store } = fixture;
      const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
      const agent = await store.write((tx) => newAgent(tx, carol, "claude"));
      await fixture.group(alice, bob);
      const rename = (account: AccountRecord, name: string) =>
        store.write((tx) => tx.setDisplayName(account.id, name));
      const found = async (viewer: AccountRecord, since?: number) => {
        const { accounts, seq } = await store.read((tx) => tx.renamedSince(viewer.id, since));
        return { names: accounts.map(({ display_name }) => display_name), seq };
      };
      expect(await found(alice)).toEqual({ names: [], seq: 0 });
      expect(await rename(bob, "Bob 1")).toBe(1);
      expect(await rename(agent, "Agent 2")).toBe(2);
      expect(await rename(bob, "Bob 3")).toBe(3);
      expect((await store.read((tx) => tx.account("bob")))?.version).toBe(3);
      expect(await found(alice, 0)).toEqual({ names: ["Bob 3"], seq: 3 });
      expect(await found(bob, 0)).toEqual({ names: ["Bob 3"], seq: 3 });
      expect(await found(carol, 0)).toEqual({ names: ["Agent 2"], seq: 3 });
      expect(await found(carol, 2)).toEqual({ names: [], seq: 3 });
      expect(await found(alice)).toEqual({ names: [], seq: 3 });
    },
  );

  check("the own counter counts the changes of each account by one", async (fixture) => {
    const { store } = fixture;
    const [alice, bob] = await fixture.people("alice", "bob");
    const count = ({ id }: AccountRecord) => store.write((tx) => tx.countOwnChange(id));
    expect((await Promise.all([count(alice), count(alice), count(alice)])).sort()).toEqual([
      1, 2, 3,
    ]);
    expect(await count(bob)).toBe(1);
    expect(await store.read((tx) => tx.blockList(alice.id))).toMatchObject({ own_seq: 3 });
  });

  check(
    "a new name is for the people in all conversations of the account, once",
    async (fixture) => {
      const { store } = fixture;
      const [alice, bob, carol, dave] = await fixture.people("alice", "bob", "carol", "dave");
      const agent = await store.write((tx) => newAgent(tx, bob, "claude"));
      const chats = [
        await fixture.group(alice, bob, agent),
        await fixture.group(alice, bob, carol),
      ];
      await fixture.group(bob, dave);
      const audience = async ({ id }: AccountRecord) => {
        const { usernames, conversations } = await store.read((tx) => tx.nameAudience(id));
        return [usernames.toSorted(), conversations.toSorted()];
      };
      const uuids = chats.map(({ uuid }) => uuid);
      expect(await audience(alice)).toEqual([["alice", "bob", "carol"], uuids.toSorted()]);
      expect(await audience(agent)).toEqual([["alice", "bob"], uuids.slice(0, 1)]);
    },
  );

  check("a new name is also for those whose history shows the account", async (fixture) => {
    const { store } = fixture;
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    const chat = await fixture.group(alice, bob, carol);
    const hook = await store.write((tx) => newAgent(tx, bob, "alerts"));
    const readers = async ({ id }: AccountRecord) => {
      const { usernames, conversations } = await store.read((tx) => tx.nameAudience(id));
      expect(conversations).toEqual([chat.uuid]);
      return usernames.toSorted();
    };
    const found = async (viewer: AccountRecord) => {
      const { accounts } = await store.read((tx) => tx.renamedSince(viewer.id, 0));
      return accounts.map(({ username }) => username);
    };
    await fixture.writeIn(chat, async (tx) => {
      await tx.deleteMembers(chat.id, [bob.id]);
      // Nothing happens to those who are no members.
      await tx.deleteMembers(chat.id, [bob.id]);
      const given = { id: "hook", secret_hash: "hash", name: "alerts", creator: "bob" };
      const place = { chat: chat.uuid, account: hook.username };
      await tx.insertIncomingHook({ ...given, ...place, created_at: START });
      for (const { id } of [alice, bob, hook]) await tx.setDisplayName(id, "New");
    });
    expect(await found(carol)).toEqual(["alice", "bob", "bob:alerts"]);
    expect(await found(bob)).toEqual(["bob", "bob:alerts"]);
    for (const account of [alice, bob, hook]) {
      expect(await readers(account)).toEqual(["alice", "carol"]);
    }
    await fixture.writeIn(chat, async (tx) => {
      await tx.insertMembers(chat.id, [bob.id], START);
      await tx.deleteMembers(chat.id, [carol.id, bob.id]);
    });
    expect(await readers(bob)).toEqual(["alice"]);
  });

  check("pages of new names have each of them once", async (fixture) => {
    const { store } = fixture;
    const [alice] = await fixture.people("alice");
    const agents = await store.write((tx) =>
      inSequence(times(1100), (n) => newAgent(tx, alice, `p${n}`)),
    );
    await store.write((tx) => inSequence(agents, (agent) => tx.setDisplayName(agent.id, "New")));
    const found: string[] = [];
    for (let since = 0, more = true; more; ) {
      const page = await store.read((tx) => tx.renamedSince(alice.id, since));
      found.push(...page.accounts.map(({ username }) => username));
      [since, more] = [page.seq, page.has_more];
    }
    expect(found).toEqual(agents.map(({ username }) => username));
  });

  check("replacing a password changes one account only", async (fixture) => {
    const { store } = fixture;
    const made = ["alice", "bob"].map((username) =>
      store.write((tx) => newAccount(tx, { username, password_hash: "old" })),
    );
    const [alice] = await Promise.all(made);
    await store.write((tx) => tx.setPassword(alice?.id ?? 0, "new"));
    const hashes = ["alice", "bob"].map((name) => store.read((tx) => tx.credentials(name)));
    expect((await Promise.all(hashes)).map((each) => each?.password_hash)).toEqual(["new", "old"]);
  });

  check("a new display name is shown everywhere", async (fixture) => {
    const [alice] = await fixture.people("alice");
    const chat = await fixture.group(alice);
    await fixture.send(chat, alice, "hello");
    await fixture.store.write((tx) => tx.setDisplayName(alice.id, "Älice 👋"));
    const view = await fixture.view(chat, alice);
    const shown = [view.created_by, at(view.participants, 0), view.last_message?.sender];
    expect(shown.map((account) => account?.display_name)).toEqual(times(3).map(() => "Älice 👋"));
  });

  /** People whose names begin alike, and agents of two of them. */
  async function crowd(fixture: Fixture) {
    const names = ["al_b", "al1", "alb", "bea", "zoe", "al"];
    const made = await fixture.people(...names);
    const [zoe, bea] = [at(made, 4), at(made, 3)];
    await fixture.store.write(async (tx) => {
      await newAgent(tx, zoe, "claude");
      await newAgent(tx, bea, "claude");
      await tx.setDisplayName(zoe.id, "Zoë van Alphen");
      await tx.setDisplayName(bea.id, "100% Bea");
    });
    return { zoe, bea };
  }
  const listed = async (fixture: Fixture, query: Parameters<ReadTx["listAccounts"]>[0]) =>
    (await fixture.store.read((tx) => tx.listAccounts(query))).map(({ username }) => username);

  check("the list has all humans and the viewer's agents, ordered by username", async (fixture) => {
    const { zoe } = await crowd(fixture);
    const names = ["al", "al1", "al_b", "alb", "bea", "zoe", "zoe:claude"];
    expect(await listed(fixture, { viewerId: zoe.id, limit: 100 })).toEqual(names);
  });

  check("the pages of the list have each account once", async (fixture) => {
    const { zoe } = await crowd(fixture);
    const whole = await listed(fixture, { viewerId: zoe.id, limit: 100 });
    const pages: string[] = [];
    for (let page = [""]; page.length > 0; ) {
      page = await listed(fixture, { viewerId: zoe.id, after: pages.at(-1), limit: 2 });
      pages.push(...page);
    }
    expect(pages).toEqual(whole);
  });

  const found = async (fixture: Fixture, query: Parameters<ReadTx["findAccounts"]>[0]) =>
    (await fixture.store.read((tx) => tx.findAccounts(query))).map(({ username }) => username);

  check(
    "people are found by the prefix of a username or of a word of the display name",
    async (fixture) => {
      const { zoe } = await crowd(fixture);
      const query = (text: string) => found(fixture, { viewerId: zoe.id, query: text, limit: 100 });
      expect(await query("al")).toEqual(["al", "al1", "al_b", "alb", "zoe"]);
      expect(await query("ALP")).toEqual(["zoe"]);
      expect(await query("phen")).toEqual([]);
      expect(await query("zoe:")).toEqual(["zoe:claude"]);
      expect(await query("al_")).toEqual(["al_b"]);
      expect(await query("100%")).toEqual(["bea"]);
      expect(await query("%")).toEqual([]);
      expect(await query("\\")).toEqual([]);
      expect(await query("zoe van")).toEqual(["zoe"]);
      expect(await query("ZOË  VAN alph")).toEqual(["zoe"]);
      expect(await query("van zoe")).toEqual([]);
      expect(await query("\u0301")).toEqual([]);
    },
  );

  check("case and accents are ignored, in any script", async (fixture) => {
    const [alice, bob, carol] = await fixture.people("alice", "bob", "carol");
    await fixture.store.write(async (tx) => {
      await tx.setDisplayName(alice.id, "Élodie D'Étampes");
      await tx.setDisplayName(bob.id, "Иван ПЕТРОВ-Ёлкин");
      await tx.setDisplayName(carol.id, "Cafe\u0301 東京");
    });
    const query = (text: string) => found(fixture, { viewerId: alice.id, query: text, limit: 100 });
    expect(await query("elodie")).toEqual(["alice"]);
    expect(await query("ÉTAMP")).toEqual(["alice"]);
    expect(await query("петров")).toEqual(["bob"]);
    expect(await query("ёлк")).toEqual(["bob"]);
    expect(await query("café")).toEqual(["carol"]);
    expect(await query("東")).toEqual(["carol"]);
  });

  check(
    "after a rename the new name is found, the old one is not, and the username is",
    async (fixture) => {
      const [alice] = await fixture.people("alice");
      await fixture.store.write((tx) => tx.setDisplayName(alice.id, "Grace Hopper"));
      await fixture.store.write((tx) => tx.setDisplayName(alice.id, "Ada Lovelace"));
      const query = (text: string) =>
        found(fixture, { viewerId: alice.id, query: text, limit: 100 });
      expect(await query("hopper")).toEqual([]);
      expect(await query("love")).toEqual(["alice"]);
      expect(await query("alice")).toEqual(["alice"]);
    },
  );

  check("pages of found accounts have each account once, agents included", async (fixture) => {
    const people = await fixture.people("anna", "ann", "an_other", "bert", "berta");
    const [anna] = people;
    await fixture.store.write(async (tx) => {
      await tx.setDisplayName(anna.id, "Anna Andersson an Anna");
      await tx.setDisplayName(at(people, 3).id, "Andy Ångström");
      await newAgent(tx, anna, "claude");
      await newAgent(tx, at(people, 3), "claude");
    });
    const pages: string[] = [];
    for (let after: { name: string; username: string } | undefined; ; ) {
      const query = { viewerId: anna.id, query: "an", after, limit: 2 };
      const page = await fixture.store.read((tx) => tx.findAccounts(query));
      pages.push(...page.map(({ username }) => username));
      after = page.at(-1);
      if (!after) break;
    }
    expect(pages).toEqual(["anna", "an_other", "bert", "ann", "anna:claude"]);
    expect(await found(fixture, { viewerId: anna.id, query: "an", limit: 100 })).toEqual(pages);
  });

  check("the list can be restricted to given usernames", async (fixture) => {
    const { zoe } = await crowd(fixture);
    const usernames = ["zoe:claude", "bea:claude", "nobody", "al", "al"];
    expect(await listed(fixture, { viewerId: zoe.id, usernames, limit: 100 })).toEqual([
      "al",
      "zoe:claude",
    ]);
    expect(await listed(fixture, { viewerId: zoe.id, usernames, after: "al", limit: 1 })).toEqual([
      "zoe:claude",
    ]);
    expect(await listed(fixture, { viewerId: zoe.id, usernames: [], limit: 100 })).toEqual([]);
  });
}

const byName = (list: AccountRecord[]) =>
  list.toSorted((one, other) => (one.username < other.username ? -1 : 1));
