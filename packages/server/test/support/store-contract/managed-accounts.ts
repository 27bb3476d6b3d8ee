import { expect } from "bun:test";
import type { ManagedAccountQuery } from "../../../src/store/operators.ts";
import { agentFixture } from "./agent-fixture.ts";
import { at, type Check, type Fixture, newAccount, newAgent, START, times } from "./fixture.ts";

export function managedAccounts(check: Check) {
  const list = ({ store }: Fixture, query: Partial<ManagedAccountQuery> = {}) =>
    store.read((tx) => tx.managedAccounts({ limit: 10, ...query }));
  const names = async (fixture: Fixture, query: Partial<ManagedAccountQuery>) =>
    (await list(fixture, query)).map(({ username }) => username);

  check("operators see people, with what others do not see", async (fixture) => {
    const { store } = fixture;
    const [bob] = await fixture.people("bob");
    const metadata = { plan: "gold" };
    const ada = await store.write(async (tx) => {
      const made = await newAccount(tx, { username: "ada", external_id: "42", metadata });
      await newAgent(tx, made, "claude");
      await tx.addOperator(made.id, START);
      return made;
    });
    await store.write((tx) =>
      tx.insertSession({
        id: Bun.randomUUIDv7(),
        token_hash: "hash",
        account_id: bob.id,
        user_agent: null,
        at: START + 5,
        expires_at: START + 10,
      }),
    );
    expect(await list(fixture)).toEqual([
      {
        ...ada,
        external_id: "42",
        metadata,
        created_at: START,
        last_used_at: null,
        is_operator: true,
      },
      {
        ...bob,
        external_id: null,
        metadata: null,
        created_at: START,
        last_used_at: START + 5,
        is_operator: false,
      },
    ]);
  });

  check("people are found by names, external id and suspension, and in pages", async (fixture) => {
    const { store } = fixture;
    const [bob] = await fixture.people("bob", "carol", "dan");
    await store.write((tx) =>
      newAccount(tx, { username: "ada", display_name: "Countess Ádá", external_id: "x 7" }),
    );
    await store.write((tx) => tx.setSuspended(bob.id, START));
    expect(await names(fixture, { query: "ada" })).toEqual(["ada"]);
    expect(await names(fixture, { query: "count" })).toEqual(["ada"]);
    expect(await names(fixture, { query: "x 7" })).toEqual(["ada"]);
    expect(await names(fixture, { query: "x" })).toEqual([]);
    expect(await names(fixture, { username: "dan" })).toEqual(["dan"]);
    expect(await names(fixture, { suspended: true })).toEqual(["bob"]);
    expect(await names(fixture, { suspended: false, limit: 2 })).toEqual(["ada", "carol"]);
    expect(await names(fixture, { suspended: false, after: "carol" })).toEqual(["dan"]);
    expect(await names(fixture, { query: "b", suspended: false })).toEqual([]);
  });

  check("an account is suspended once, until it is restored", async (fixture) => {
    const { store } = fixture;
    const [alice, bob] = await fixture.people("alice", "bob");
    const id = Bun.randomUUIDv7();
    const session = { id, token_hash: "hash", account_id: alice.id, user_agent: null };
    await store.write((tx) =>
      tx.insertSession({ ...session, at: START, expires_at: START + 1_000_000 }),
    );
    const set = (time: number | null) => store.write((tx) => tx.setSuspended(alice.id, time));
    const hasEnded = () => store.read((tx) => tx.hasSessionEnded(id));
    expect(await set(null)).toBe(false);
    expect(await set(START + 1)).toBe(true);
    expect(await set(START + 2)).toBe(false);
    expect(await store.read((tx) => tx.account("alice"))).toMatchObject({
      suspended_at: START + 1,
    });
    expect(await store.read((tx) => tx.session("hash"))).toMatchObject({
      account: { suspended_at: START + 1 },
    });
    expect(await hasEnded()).toBe(true);
    expect(await store.read((tx) => tx.account("bob"))).toEqual(bob);
    expect(await set(null)).toBe(true);
    expect(await store.read((tx) => tx.account("alice"))).toEqual(alice);
    expect(await hasEnded()).toBe(false);
  });

  check("the open turns of a person's agents are found, and their suspension", async (fixture) => {
    const { alice, bob, agent, chat, begin, finish } = await agentFixture(fixture);
    const { store } = fixture;
    const open = (id: number) => store.read((tx) => tx.conversationsWithOpenTurns(id));
    const isSuspended = async () =>
      (await store.read((tx) => tx.conversationAgents(chat.id))).map((each) => each.is_suspended);
    expect(await open(alice.id)).toEqual([]);
    const { id } = await begin();
    expect(await open(alice.id)).toEqual([chat.id]);
    expect(await open(bob.id)).toEqual([]);
    expect(await isSuspended()).toEqual([false]);
    await store.write((tx) => tx.setSuspended(alice.id, START));
    expect(await isSuspended()).toEqual([true]);
    const owner = (await store.read((tx) => tx.agent(agent.id)))?.owner;
    expect(owner).toMatchObject({ username: "alice", suspended_at: START });
    await finish(id);
    expect(await open(alice.id)).toEqual([]);
  });

  check("the statistics count people, activity, conversations and messages", async (fixture) => {
    const { store } = fixture;
    const people = await fixture.people("alice", "bob", "carol");
    const [alice, bob, carol] = people;
    for (const n of times(3)) {
      const session = { id: Bun.randomUUIDv7(), token_hash: `${n}`, user_agent: null };
      const account_id = at(people, n).id;
      const used = START + n * 1000;
      await store.write((tx) =>
        tx.insertSession({ ...session, account_id, at: used, expires_at: used + 1 }),
      );
    }
    await store.write((tx) => tx.setSuspended(carol.id, START));
    const chat = await fixture.group(alice, bob);
    for (const text of ["one", "two"]) await fixture.send(chat, alice, text);
    const since = { day: START + 2000, month: START + 1000 };
    expect(await store.read((tx) => tx.statistics(since))).toEqual({
      people: 3,
      suspended: 1,
      active_day: 1,
      active_month: 2,
      conversations: 1,
      messages: 2,
      open_turns: 0,
    });
  });
}
