import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SharedPostgres, sharedPostgres } from "@parley/testkit/postgres.ts";
import { fails, stallsAfter } from "@parley/testkit/provider-responders.ts";
import { providersAt, type Responder, startProvider } from "@parley/testkit/provider-server.ts";
import { until } from "@parley/testkit/until.ts";
import { createContextFiles } from "../src/agents/context-files/index.ts";
import { createDeltas } from "../src/agents/deltas.ts";
import { createDispatcher } from "../src/agents/dispatcher.ts";
import { createElicitations } from "../src/agents/tools/elicitation.ts";
import { createToolServers } from "../src/agents/tools/servers.ts";
import { createTurnLoads } from "../src/agents/turn-loads.ts";
import { alone, type Cluster } from "../src/changes/cluster.ts";
import { readConfig } from "../src/config/config.ts";
import { stopTurns } from "../src/domain/turns.ts";
import { createLogger } from "../src/observe/log.ts";
import { createMetrics } from "../src/observe/metrics.ts";
import { createGuardedFetch } from "../src/security/guarded-fetch.ts";
import { createVault } from "../src/security/vault.ts";
import { openPostgresStore } from "../src/store/postgres/index.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { type Store, Unavailable, type WriteTx } from "../src/store/store.ts";
import { askAgent, newAccount, newAgent } from "./support/store-contract/fixture.ts";

const NODE = "here";
const log = createLogger("silent");
const vault = createVault([Buffer.alloc(32, 1)]);
let folder: string;
let postgres: SharedPostgres;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "parley-dispatcher-"));
  postgres = await sharedPostgres();
});
afterAll(async () => {
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const stores: [string, () => Promise<Store>][] = [
  ["SQLite", async () => openSqliteStore(join(folder, `${Bun.randomUUIDv7()}.db`))],
  [
    "PostgreSQL",
    async () => openPostgresStore({ url: (await postgres.database()).url, tls: false }),
  ],
];

/** Another node that is idle whatever it is asked to claim. */
const withIdleNode: Cluster = {
  ...alone,
  share(shared) {
    const report = () => shared.receive(shared.schema.parse({ running: 0, claim: {} }), "idle");
    report();
    return report;
  },
};

/** Everything that a node needs to run turns. */
function nodeOn(store: Store, environment = {}, cluster = alone) {
  const fetch = createGuardedFetch({ allowPrivate: false });
  const servers = createToolServers({ store, vault, fetch, log, metrics: createMetrics() });
  const agents = createDispatcher({
    node: NODE,
    config: readConfig(environment),
    store,
    vault,
    deltas: createDeltas(store, NODE),
    contextFiles: createContextFiles({ store, blobs: null, log }),
    toolServers: servers,
    elicit: createElicitations(store).ask,
    loads: createTurnLoads(cluster),
    log,
  });
  return {
    agents,
    async [Symbol.asyncDispose]() {
      await agents.stop();
      await servers.close();
    },
  };
}

/** Queues a turn that ends without a provider: its agent may not answer. */
const queueRefusedTurn = (store: Store): Promise<number> =>
  store.write(async (tx) => {
    const alice = await newAccount(tx, { username: "alice" });
    const agent = await newAgent(tx, alice, "claude");
    return (await askAgent(tx, alice, agent, "No.")).turn_id;
  });

/** Queues a turn for which the provider is called. */
const queueTurn = (store: Store, username = "alice"): Promise<number> =>
  store.write(async (tx) => {
    const owner = await newAccount(tx, { username });
    const agent = await newAgent(tx, owner, "claude");
    const binding = { owner_id: owner.id, provider: "claude" };
    const sealed = vault.seal("key", binding);
    await tx.setAgentKey({ ...binding, sealed, tail: "key", at: Date.now() });
    return (await askAgent(tx, owner, agent)).turn_id;
  });

describe.each(stores)("the dispatcher on %s", (_, open) => {
  const statusOf = (store: Store, id: number) =>
    store.read(async (tx) => (await tx.turn(id))?.status);
  const untilAnswered = (store: Store, id: number) =>
    until(async () => (await statusOf(store, id)) === "failed", "the turn has ended");

  test("claims turns although the store fails when it starts", async () => {
    const store = await open();
    const id = await queueRefusedTurn(store);
    let writes = 0;
    const write: Store["write"] = (unit) =>
      ++writes <= 2 ? Promise.reject(new Unavailable("for now")) : store.write(unit);
    {
      await using node = nodeOn({ ...store, write });
      node.agents.start();
      await untilAnswered(store, id);
    }
    await store.close();
  });

  test("runs a turn again that the store did not let it begin", async () => {
    const store = await open();
    const id = await queueRefusedTurn(store);
    let reads = 0;
    const read: Store["read"] = (unit) =>
      ++reads === 1 ? Promise.reject(new Unavailable("for now")) : store.read(unit);
    {
      await using node = nodeOn({ ...store, read });
      node.agents.start();
      await untilAnswered(store, id);
    }
    await store.close();
  });

  test("does not take over a turn that it runs, though the lease could not be renewed", async () => {
    const store = await open();
    const id = await queueRefusedTurn(store);
    const ended = Promise.withResolvers<void>();
    let runs = 0;
    let checks = 0;
    const read: Store["read"] = async (unit) => {
      runs++;
      await ended.promise;
      return store.read(unit);
    };
    const note: Store["note"] = (unit) =>
      store.note((tx) => {
        const renewLeases: WriteTx["renewLeases"] = (node, ids) => tx.renewLeases(node, ids, 0);
        return unit(Object.create(tx, { renewLeases: { value: renewLeases } }));
      });
    const write: Store["write"] = async (unit) => {
      const result = await store.write(unit);
      if (runs > 0) checks++;
      return result;
    };
    {
      await using node = nodeOn({ ...store, read, note, write });
      node.agents.start();
      // After each renewal come a takeover and a claim.
      await until(() => checks >= 4, "turns are looked for twice");
      ended.resolve();
      await untilAnswered(store, id);
      expect(runs).toBe(1);
    }
    await store.close();
  });

  test("leaves a turn that is claimed while it stops to another process", async () => {
    const store = await open();
    const id = await queueRefusedTurn(store);
    const claimed = Promise.withResolvers<void>();
    const stopping = Promise.withResolvers<void>();
    const write: Store["write"] = async (unit) => {
      const result = await store.write(unit);
      if ((await statusOf(store, id)) === "running") {
        claimed.resolve();
        await stopping.promise;
      }
      return result;
    };
    {
      await using node = nodeOn({ ...store, write });
      node.agents.start();
      await claimed.promise;
      const stopped = node.agents.stop();
      stopping.resolve();
      await stopped;
      expect(node.agents.running()).toBe(0);
      const abandoned = await store.write((tx) => tx.abandonedTurns(NODE));
      expect(abandoned).toMatchObject([{ id, status: "running" }]);
    }
    await store.close();
  });

  test("claims turns that it has handed over to a node that does not claim them", async () => {
    const store = await open();
    await queueTurn(store, "alice");
    await queueTurn(store, "bob");
    {
      await using provider = await startProvider(stallsAfter("Hel"));
      await using node = nodeOn(store, providersAt(provider.url), withIdleNode);
      node.agents.start();
      await until(() => node.agents.running() === 2, "both turns run");
    }
    await store.close();
  });

  const waits = { "retry-after": "20" };
  test.each<[string, Responder, number, object | null]>([
    ["the input that was reported", stallsAfter("Hel"), 25, { input_tokens: 25 }],
    ["nothing of a call that was refused", fails(429, { headers: waits }), 0, null],
  ])("charges for a stopped turn %s", async (_, responder, input, usage) => {
    const store = await open();
    const id = await queueTurn(store);
    const read = () => store.read((tx) => tx.turn(id));
    {
      await using provider = await startProvider(responder);
      await using node = nodeOn(store, providersAt(provider.url));
      node.agents.start();
      await until(async () => (await read())?.charged_input === input, "the provider has answered");
      await store.write(async (tx) => {
        const turn = await tx.turn(id);
        await stopTurns(tx, turn ? [turn] : []);
      });
      expect((await read())?.status).toBe("stopped");
      if (usage === null) expect((await read())?.usage).toBeNull();
      else expect((await read())?.usage).toMatchObject(usage);
    }
    await store.close();
  });
});
