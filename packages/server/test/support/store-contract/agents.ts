import { expect } from "bun:test";
import { DEFAULT_LIMITS } from "../../../src/rules/budget.ts";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import {
  type Check,
  conversationOf,
  type Fixture,
  inSequence,
  newAccount,
  newAgent,
  START,
} from "./fixture.ts";

export function agents(check: Check) {
  const UNLIMITED = {
    spenders: "participants",
    daily_tokens: null,
    chat_daily_tokens: null,
    turns_per_minute: null,
    waiting_turns: 16,
  } as const;

  async function owned({ store, people }: Fixture) {
    const [alice, bob] = await people("alice", "bob");
    const [gpt, claude, his] = (await store.write((tx) =>
      inSequence(
        [
          [alice, "gpt"],
          [alice, "claude"],
          [bob, "claude"],
        ] as const,
        ([owner, provider]) => newAgent(tx, owner, provider),
      ),
    )) as [AccountRecord, AccountRecord, AccountRecord];
    const agent = (account: AccountRecord) => store.read((tx) => tx.agent(account.id));
    const setKey = (owner: AccountRecord, sealed: string, provider = "claude") =>
      store.write((tx) =>
        tx.setAgentKey({ owner_id: owner.id, provider, sealed, tail: `…${sealed}`, at: START }),
      );
    return { alice, bob, gpt, claude, his, agent, setKey };
  }

  check("an agent without settings has the default limits, and its owner", async (fixture) => {
    const { alice, claude, agent } = await owned(fixture);
    expect(await agent(claude)).toEqual({
      account: claude,
      owner: alice,
      model: null,
      instructions: null,
      limits: DEFAULT_LIMITS,
      sealed_key: null,
      key_tail: null,
    });
    expect(await agent(alice)).toBeNull();
  });

  check(
    "an owner's default agents come first; hooks and erased agents are not listed",
    async (fixture) => {
      const { alice, gpt, claude } = await owned(fixture);
      const { store } = fixture;
      const named = (name: string, provider?: string) =>
        store.write((tx) =>
          newAccount(tx, {
            username: `alice:${name}`,
            kind: "agent",
            owner_id: alice.id,
            ...(provider !== undefined && { provider }),
          }),
        );
      const writer = await named("writer", "claude");
      const builder = await named("builder", "@external");
      const gone = await named("gone", "gpt");
      await named("hook");
      await store.write(async (tx) => {
        await tx.setAgentProfile(gone.id, { model: "m", instructions: "Be kind." });
        await tx.eraseAccount(gone, { messages: false, at: START });
      });
      const list = await store.read((tx) => tx.agents(alice.id));
      expect(list.map(({ account }) => account)).toEqual([claude, gpt, builder, writer]);
      const query = { viewerId: alice.id, query: "alice:", limit: 10 };
      const found = await store.read((tx) => tx.findAccounts(query));
      expect(found.map(({ username }) => username)).not.toContain(gone.username);
      expect(await store.read((tx) => tx.agent(gone.id))).toMatchObject({
        account: { erased_at: START },
        model: null,
        instructions: null,
      });
    },
  );

  check("an agent that changes its provider uses that provider's key", async (fixture) => {
    const { alice, claude, agent, setKey } = await owned(fixture);
    await setKey(alice, "for gpt", "gpt");
    await fixture.store.write((tx) => tx.setAgentProvider(claude.id, "gpt", START));
    expect(await agent(claude)).toMatchObject({
      account: { ...claude, provider: "gpt" },
      sealed_key: "for gpt",
    });
  });

  check(
    "there is one key for each owner and provider; it can be replaced and removed",
    async (fixture) => {
      const { alice, bob, gpt, claude, his, agent, setKey } = await owned(fixture);
      const keyOf = async (account: AccountRecord) => {
        const found = await agent(account);
        return [found?.sealed_key, found?.key_tail];
      };
      await setKey(alice, "first");
      await setKey(bob, "his");
      await setKey(alice, "second");
      expect(await keyOf(claude)).toEqual(["second", "…second"]);
      expect(await keyOf(his)).toEqual(["his", "…his"]);
      expect(await keyOf(gpt)).toEqual([null, null]);
      await fixture.store.write((tx) => tx.removeAgentKey(alice.id, "claude"));
      await fixture.store.write((tx) => tx.removeAgentKey(alice.id, "gpt"));
      expect(await keyOf(claude)).toEqual([null, null]);
      expect(await keyOf(his)).toEqual(["his", "…his"]);
    },
  );

  check("a key is resealed unless it was changed meanwhile", async (fixture) => {
    const { alice, bob, setKey } = await owned(fixture);
    await setKey(alice, "hers");
    await setKey(bob, "his");
    const sealed = await fixture.store.read((tx) => tx.sealedKeys());
    await setKey(bob, "changed");
    await fixture.store.write((tx) =>
      inSequence(sealed, (key) => tx.resealKey(key, `${key.sealed} again`)),
    );
    const keys = await fixture.store.read((tx) => tx.sealedKeys());
    expect(keys.toSorted((one, other) => one.owner_id - other.owner_id)).toEqual([
      { owner_id: alice.id, provider: "claude", sealed: "hers again" },
      { owner_id: bob.id, provider: "claude", sealed: "changed" },
    ]);
  });

  check("profile and limits are set independently", async (fixture) => {
    const { claude, gpt, agent } = await owned(fixture);
    const { store } = fixture;
    const limits = {
      ...UNLIMITED,
      spenders: "owner",
      daily_tokens: 1000,
      waiting_turns: 3,
    } as const;
    const profile = { model: "large", instructions: "Be brief." };
    await store.write((tx) => tx.setAgentProfile(claude.id, profile));
    expect(await agent(claude)).toMatchObject({ ...profile, limits: DEFAULT_LIMITS });
    await store.write((tx) => tx.setAgentLimits(claude.id, limits));
    expect(await agent(claude)).toMatchObject({ ...profile, limits });
    await store.write((tx) => tx.setAgentProfile(claude.id, { model: null, instructions: null }));
    expect(await agent(claude)).toMatchObject({ model: null, instructions: null, limits });
    expect(await agent(gpt)).toMatchObject({ model: null, limits: DEFAULT_LIMITS });
    await store.write((tx) => tx.setAgentLimits(claude.id, UNLIMITED));
    expect(await agent(claude)).toMatchObject({ limits: UNLIMITED });
  });

  check(
    "a conversation counts its agents, and keeps the mode of each until it leaves",
    async (fixture) => {
      const { alice, bob, gpt, claude } = await owned(fixture);
      const { store } = fixture;
      const chat = await fixture.group(alice, bob, gpt);
      const other = await fixture.group(alice, gpt);
      const agents = () => store.read((tx) => tx.conversationAgents(chat.id));
      const count = async () => (await store.read((tx) => conversationOf(tx, chat))).agent_count;
      const member = (account: AccountRecord, always_on: boolean) => ({
        account,
        always_on,
        spenders: "participants" as const,
        waiting_turns: 16,
        is_suspended: false,
      });
      await fixture.writeIn(chat, async (tx) => {
        await tx.insertMembers(chat.id, [claude.id], START);
        await tx.setAlwaysOn(chat.id, gpt.id, true);
      });
      expect([await agents(), await count()]).toEqual([
        [member(gpt, true), member(claude, false)],
        2,
      ]);
      expect(await store.read((tx) => tx.conversationAgents(other.id))).toEqual([
        member(gpt, false),
      ]);
      expect(await store.read((tx) => tx.members(chat.id))).toContainEqual({
        account: gpt,
        always_on: true,
        last_read_seq: 0,
      });
      await fixture.writeIn(chat, (tx) => tx.deleteMembers(chat.id, [gpt.id]));
      expect([await agents(), await count()]).toEqual([[member(claude, false)], 1]);
      await fixture.writeIn(chat, (tx) => tx.insertMembers(chat.id, [gpt.id], START));
      expect(await agents()).toEqual([member(claude, false), member(gpt, false)]);
      await store.write((tx) => tx.eraseAccount(gpt, { messages: false, at: START }));
      expect(await agents()).toEqual([member(claude, false)]);
    },
  );
}
