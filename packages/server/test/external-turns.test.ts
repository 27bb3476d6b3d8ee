import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@parley/testkit/until.ts";
import { createExternalTurns } from "../src/agents/external/index.ts";
import { createLogger } from "../src/observe/log.ts";
import { EXTERNAL } from "../src/rules/agents.ts";
import type { AgentCaller } from "../src/security/caller.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { type Store, Unavailable } from "../src/store/store.ts";
import { askAgent, newAccount } from "./support/store-contract/fixture.ts";

const nobody = { people: () => [], person: () => undefined };
const changes = { signalHere: () => {} };

/** An external agent with a turn that waits. */
const agentWithTurn = (store: Store) =>
  store.write(async (tx) => {
    const alice = await newAccount(tx, { username: "alice" });
    const bot = { username: "alice:bot", kind: "agent", provider: EXTERNAL } as const;
    const agent = await newAccount(tx, { ...bot, owner_id: alice.id });
    return { agent, ...(await askAgent(tx, alice, agent)) };
  });

test("a turn whose program disconnects while it claims is given to the next one, also after an outage", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-external-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const { agent, asked, turn_id } = await agentWithTurn(store);
  const leaving = new AbortController();
  let isAway = false;
  const write: Store["write"] = async (unit) => {
    if (isAway) throw new Unavailable("the database cannot be reached");
    const result = await store.write(unit);
    leaving.abort();
    return result;
  };
  const turns = createExternalTurns({
    store: { ...store, write },
    changes,
    connected: nobody,
    log: createLogger("silent"),
  });
  const caller = { kind: "agent", account: agent, token_id: "token" } as AgentCaller;
  const claim = (signal: AbortSignal) => turns.claim(caller, { turnId: null, waitMs: 0, signal });
  expect(await claim(leaving.signal)).toBeNull();
  const { signal } = new AbortController();
  isAway = true;
  await expect(claim(signal)).rejects.toThrow(Unavailable);
  isAway = false;
  expect(await claim(signal)).toMatchObject({ turn_id, message_id: asked.id });
  expect(await claim(signal)).toBeNull();
  await turns.stop();
  await store.close();
  rmSync(folder, { recursive: true });
});

test("after an outage of the store, programs can be seen again before their turns are ended", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-external-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  await agentWithTurn(store);
  let failures = 0;
  const calls: string[] = [];
  const afterOutage = <Call extends (...values: never[]) => Promise<unknown>>(call: Call) =>
    (async (...values) => {
      if (++failures <= 20) throw new Unavailable("the database cannot be reached");
      calls.push(call === store.read ? "looks for the store" : "ends turns");
      return call(...values);
    }) as Call;
  const turns = createExternalTurns({
    store: { ...store, write: afterOutage(store.write), read: afterOutage(store.read) },
    changes,
    connected: nobody,
    log: createLogger("silent"),
    tickMs: 10,
    offlineMs: 0,
  });
  turns.start();
  await until(() => calls.includes("ends turns"), "the end of the turn");
  expect(calls[0]).toBe("looks for the store");
  await turns.stop();
  await store.close();
  rmSync(folder, { recursive: true });
});

test("a turn that a connected program does not claim is ended as agent_offline", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-external-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const { agent, turn_id } = await agentWithTurn(store);
  const connected = { ...nobody, people: () => [{ account: agent }] };
  const turns = createExternalTurns({
    store,
    changes,
    connected,
    log: createLogger("silent"),
    tickMs: 10,
    offlineMs: 600_000,
    unclaimedMs: 0,
  });
  const turn = () => store.read((tx) => tx.turn(turn_id));
  turns.start();
  await until(async () => (await turn())?.status === "failed", "the end of the turn");
  expect((await turn())?.error).toEqual({
    code: "agent_offline",
    message: expect.stringContaining("connected, but takes no turns"),
    parameters: { reason: "not_claiming" },
  });
  await turns.stop();
  await store.close();
  rmSync(folder, { recursive: true });
});
