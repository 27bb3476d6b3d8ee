import { startNats } from "@parley/testkit/nats.ts";
import { startPostgres, type TestPostgres } from "@parley/testkit/postgres.ts";
import { SQL } from "bun";
import { openPostgresStore } from "../packages/server/src/store/postgres/index.ts";
import { FLOOR, LIMITS, MAIN, range, temporaryFolder, WINDOWS } from "./environment.ts";
import { generate, type Measured, onServerCore, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { type Seed, seed } from "./seed.ts";

const KEY = Buffer.alloc(32, 7).toString("base64");
const PAIRS = 200;
const groups = range(PAIRS).map((pair) => [2 * pair, 2 * pair + 1]);
/** As many as in `pairs-400`: a server that has just started still compiles its code. */
const MESSAGES = 40_000;
const PARTS = ["nodes", "PostgreSQL", "NATS"] as const;

interface Result {
  rate: number;
  parts: Record<string, number>;
  ack_p50: number;
  ack_p99: number;
}

/**
 * The same load on SQLite, and on one and three nodes with PostgreSQL and NATS. Each set-up runs on
 * one core, services included, so the throughput shows the total cost of a message and the parts show
 * where it arises. The two people of each conversation are on different nodes if there are several,
 * so that every event crosses NATS.
 */
export async function nodes(): Promise<Measurement[]> {
  await using postgres = await startPostgres({ sync: true });
  await using nats = await startNats();
  onServerCore(postgres.pid);
  onServerCore(nats.pid);
  const env = { PARLEY_MASTER_KEY: KEY, PARLEY_LIMITS: LIMITS, NATS_URL: nats.url };
  const parts = { PostgreSQL: [postgres.pid], NATS: [nats.pid] };
  const sqlite = await onSqlite();
  const one = await onPostgres(postgres, 1, env, parts);
  const floor = await floorOnPostgres(postgres, 1, nats.url, parts);
  const three = await onPostgres(postgres, 3, env, parts);
  const threeFloors = await floorOnPostgres(postgres, 3, nats.url, parts);
  return [
    ...rows("SQLite, one node", sqlite),
    ...rows("PostgreSQL and NATS, one node", one, { goal: 80 }),
    ...rows("PostgreSQL and NATS, one node, floor stores", one, { baseline: floor }),
    ...rows("PostgreSQL and NATS, three nodes", three, { baseline: one, goal: 1.4 }),
    ...rows("PostgreSQL and NATS, three nodes, floor stores", three, { baseline: threeFloors }),
  ];
}

function rows(
  scenario: string,
  results: readonly Result[],
  compared: { baseline?: readonly Result[]; goal?: number } = {},
): Measurement[] {
  const { baseline, goal } = compared;
  const row = (metric: string, unit: string, value: (result: Result) => number): Measurement => ({
    scenario,
    metric,
    unit,
    parley: results.map(value),
    ...(baseline && { floor: baseline.map(value) }),
  });
  const all = ({ parts }: Result) => Object.values(parts).reduce((sum, cpu) => sum + cpu, 0);
  return [
    {
      ...row("CPU per message, all parts", "µs", (result) => all(result) / MESSAGES),
      ...(goal !== undefined && { goal }),
    },
    ...PARTS.filter((part) => (baseline ?? results)[0]?.parts[part] !== undefined).map((part) =>
      row(`CPU per message, ${part}`, "µs", ({ parts }) => (parts[part] ?? 0) / MESSAGES),
    ),
    row("messages a second", "1/s", ({ rate }) => rate),
    row("acknowledged p50", "ms", ({ ack_p50 }) => ack_p50),
    row("acknowledged p99", "ms", ({ ack_p99 }) => ack_p99),
  ];
}

async function onSqlite(): Promise<Result[]> {
  using folder = temporaryFolder();
  const made = await seed(folder.path, { people: 2 * PAIRS, groups });
  await using server = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
  });
  return await measure([server], made, {});
}

async function onPostgres(
  postgres: TestPostgres,
  count: number,
  env: Record<string, string>,
  parts: Record<string, number[]>,
): Promise<Result[]> {
  const database = await postgres.database();
  const store = await openPostgresStore({ url: database.url, tls: false });
  const made = await seed("", { people: 2 * PAIRS, groups }, store);
  await using stack = new AsyncDisposableStack();
  const servers: Measured[] = [];
  for (let index = 0; index < count; index++) {
    servers.push(stack.use(await startPinned(MAIN, { ...env, DATABASE_URL: database.url })));
  }
  return await measure(servers, made, parts, () => analyze(database.url));
}

/** The floor that stores. */
async function floorOnPostgres(
  postgres: TestPostgres,
  count: number,
  nats: string,
  parts: Record<string, number[]>,
): Promise<Result[]> {
  const { url } = await postgres.database();
  const tokens = range(2 * PAIRS).map((person) => `floor_${person}`);
  const conversations = range(PAIRS).map(() => Bun.randomUUIDv7());
  const subscriptions = Object.fromEntries(
    tokens.map((token, person) => [token, [conversations[person >> 1]]]),
  );
  const plan = JSON.stringify({ subscriptions, database: url, nats });
  await using stack = new AsyncDisposableStack();
  const servers: Measured[] = [];
  for (let index = 0; index < count; index++) {
    servers.push(stack.use(await startPinned(FLOOR, { FLOOR: plan })));
  }
  return await measure(servers, { tokens, conversations }, parts, () => analyze(url));
}

/**
 * Does once what autovacuum does every minute. PostgreSQL's statistics of tables that were just filled
 * are those of nearly empty ones: until the next ANALYZE it may read all messages of a conversation to
 * find a duplicate, and whether that falls into a window is chance.
 */
async function analyze(url: string): Promise<void> {
  await using sql = new SQL({ url, max: 1, tls: false });
  await sql.unsafe("VACUUM ANALYZE").simple();
}

async function measure(
  servers: readonly Measured[],
  { tokens, conversations }: Seed,
  parts: Record<string, number[]>,
  warmedUp = async () => {},
): Promise<Result[]> {
  const results: Result[] = [];
  for (let window = 0; window <= WINDOWS; window++) {
    const result = await generate<Result>("load", {
      url: servers.map(({ url }) => url),
      pid: servers[0]?.pid,
      parts: { nodes: servers.map(({ pid }) => pid), ...parts },
      tokens,
      senders: conversations.map((conversation, pair) => ({ place: 2 * pair, conversation })),
      warmup: MESSAGES / 10,
      // The first window is a warm-up, in which every node compiles what it runs often.
      messages: window === 0 ? MESSAGES * servers.length : MESSAGES,
      window: 2,
      receivers: 2,
      lastMembers: conversations.map((_, pair) => 2 * pair + 1),
    });
    if (window > 0) results.push(result);
    else await warmedUp();
  }
  return results;
}
