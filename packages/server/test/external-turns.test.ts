import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { externalTurns } from "../src/agents/external/index.ts";
import { logger } from "../src/observe/log.ts";
import type { Hub } from "../src/realtime/hub.ts";
import { EXTERNAL } from "../src/rules/agents.ts";
import type { AgentCaller } from "../src/security/caller.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import type { Store } from "../src/store/store.ts";
import { askAgent, newAccount } from "./support/store-contract/fixture.ts";

/** An external agent with a turn that waits. */
const agentWithTurn = (store: Store) =>
  store.write(async (tx) => {
    const alice = await newAccount(tx, { username: "alice" });
    const bot = { username: "alice:bot", kind: "agent", provider: EXTERNAL } as const;
    const agent = await newAccount(tx, { ...bot, owner_id: alice.id });
    return { agent, ...(await askAgent(tx, alice, agent)) };
  });

test("a turn whose program disconnects while it claims is given to the next one", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-external-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const { agent, asked, turn_id } = await agentWithTurn(store);
  const leaving = new AbortController();
  const write: Store["write"] = async (unit) => {
    const result = await store.write(unit);
    leaving.abort();
    return result;
  };
  const hub = { people: () => [], person: () => undefined, receive: () => {} } as unknown as Hub;
  const turns = externalTurns({ store: { ...store, write }, hub, log: logger("silent") });
  const caller = { kind: "agent", account: agent, token_id: "token" } as AgentCaller;
  const claim = (signal: AbortSignal) => turns.claim(caller, { turnId: null, waitMs: 0, signal });
  expect(await claim(leaving.signal)).toBeNull();
  const { signal } = new AbortController();
  expect(await claim(signal)).toMatchObject({ turn_id, message_id: asked.id });
  expect(await claim(signal)).toBeNull();
  await turns.stop();
  await store.close();
  rmSync(folder, { recursive: true });
});
