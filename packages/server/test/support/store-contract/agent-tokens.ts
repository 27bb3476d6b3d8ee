import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { type Check, newAgent, START } from "./fixture.ts";

export function agentTokens(check: Check) {
  check("a token is found by its hash until it is deleted", async ({ store, people }) => {
    const [alice, bob] = await people("alice", "bob");
    const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
    const ids = [Bun.randomUUIDv7(), Bun.randomUUIDv7()] as const;
    for (const [place, id] of ids.entries()) {
      const token = { id, token_hash: `hash ${place}`, account_id: agent.id, name: "laptop" };
      await store.write((tx) => tx.insertAgentToken({ ...token, at: START + place }));
    }
    const find = (hash: string) => store.read((tx) => tx.agentToken(hash));
    const listed = (owner: AccountRecord) => store.read((tx) => tx.agentTokens(owner.id));
    const shown = { account: agent, name: "laptop", last_used_at: null };
    expect(await find("hash 0")).toEqual({ ...shown, id: ids[0], created_at: START });
    expect(await find("hash 2")).toBeNull();
    await store.write((tx) => tx.touchAgentToken(ids[1], START + 5));
    expect(await listed(alice)).toEqual([
      { ...shown, id: ids[0], created_at: START },
      { ...shown, id: ids[1], created_at: START + 1, last_used_at: START + 5 },
    ]);
    expect(await listed(bob)).toEqual([]);
    await store.write((tx) => tx.deleteAgentTokens([ids[0], Bun.randomUUIDv7()]));
    await store.write((tx) => tx.deleteAgentTokens([]));
    expect(await find("hash 0")).toBeNull();
    const isValid = (id: string) => store.read((tx) => tx.isAgentTokenValid(id));
    expect([await isValid(ids[0]), await isValid(ids[1])]).toEqual([false, true]);
    await store.write((tx) => tx.setSuspended(alice.id, START + 6));
    expect(await isValid(ids[1])).toBe(false);
    await store.write((tx) => tx.setSuspended(alice.id, null));
    expect(await isValid(ids[1])).toBe(true);
  });
}
