import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPostgresStore } from "../packages/server/src/store/postgres/index.ts";
import { startNats } from "../tests/support/nats.ts";
import { startPostgres, type TestPostgres } from "../tests/support/postgres.ts";
import { generate, type Measured, onServerCore, startPinned } from "./process.ts";
import { type Seed, seed } from "./seed.ts";

const MAIN = new URL("../packages/server/src/main.ts", import.meta.url).pathname;
const KEY = Buffer.alloc(32, 7).toString("base64");
const LIMITS = JSON.stringify({ messages_per_second: 0, operations_per_second: 0 });
const PAIRS = 200;
const groups = Array.from({ length: PAIRS }, (_, pair) => [2 * pair, 2 * pair + 1]);
const MESSAGES = 30_000;

interface Result {
  rate: number;
  parts: Record<string, number>;
  ack_p50: number;
  ack_p99: number;
  delivered_p50: number;
  delivered_p99: number;
}

/**
 * One node and three, with everything they need on the one core: so throughput tells what a message
 * costs in all, and the parts tell where. The embedded store stands beside it, in the same run.
 */
export async function nodes(): Promise<void> {
  await using postgres = await startPostgres({ sync: true });
  await using nats = await startNats();
  onServerCore(postgres.pid);
  onServerCore(nats.pid);
  const shared = { PARLEY_MASTER_KEY: KEY, PARLEY_LIMITS: LIMITS };
  const parts = { PostgreSQL: [postgres.pid], NATS: [nats.pid] };

  const columns: Record<string, Result> = {
    SQLite: await onSqlite(),
    "PG, one": await onPostgres(postgres, 1, shared, { PostgreSQL: [postgres.pid] }),
    "PG+NATS, one": await onPostgres(postgres, 1, { ...shared, NATS_URL: nats.url }, parts),
    "PG+NATS, three": await onPostgres(postgres, 3, { ...shared, NATS_URL: nats.url }, parts),
  };
  show(columns);
}

async function onSqlite(): Promise<Result> {
  const dataDir = mkdtempSync(join(tmpdir(), "parley-bench-"));
  try {
    const made = await seed(dataDir, { people: 2 * PAIRS, groups });
    await using server = await startPinned(MAIN, { PARLEY_DATA: dataDir, PARLEY_LIMITS: LIMITS });
    return await measure([server], made, {});
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function onPostgres(
  postgres: TestPostgres,
  count: number,
  env: Record<string, string>,
  parts: Record<string, number[]>,
): Promise<Result> {
  const database = await postgres.database();
  const store = await openPostgresStore({ url: database.url, tls: false, keepsEvents: false });
  const made = await seed("", { people: 2 * PAIRS, groups }, store);
  await using stack = new AsyncDisposableStack();
  const servers: Measured[] = [];
  for (let index = 0; index < count; index++) {
    servers.push(stack.use(await startPinned(MAIN, { ...env, DATABASE_URL: database.url })));
  }
  return await measure(servers, made, parts);
}

function measure(
  servers: readonly Measured[],
  { tokens, conversations }: Seed,
  parts: Record<string, number[]>,
): Promise<Result> {
  return generate<Result>("load", {
    url: servers.map(({ url }) => url),
    pid: servers[0]?.pid,
    parts: { nodes: servers.map(({ pid }) => pid), ...parts },
    tokens,
    senders: conversations.map((conversation, pair) => ({ place: 2 * pair, conversation })),
    warmup: 10_000,
    messages: MESSAGES,
    window: 2,
    receivers: 2,
  });
}

const print = (line: string) => process.stdout.write(`${line}\n`);

function show(columns: Record<string, Result>): void {
  const results = Object.values(columns);
  const line = (name: string, value: (result: Result) => number) =>
    print(
      `  ${name.padEnd(30)}${results.map((one) => value(one).toFixed(1).padStart(16)).join("")}`,
    );
  const cpu = (part: string) => (result: Result) => (result.parts[part] ?? 0) / MESSAGES;
  const all = (result: Result) =>
    Object.keys(result.parts).reduce((sum, part) => sum + cpu(part)(result), 0);
  print(`conversations of two, all on one core: ${MESSAGES} messages, ${2 * MESSAGES} deliveries`);
  print(
    `  ${"".padEnd(30)}${Object.keys(columns)
      .map((name) => name.padStart(16))
      .join("")}`,
  );
  line("messages a second", ({ rate }) => rate);
  for (const part of ["nodes", "PostgreSQL", "NATS"]) line(`CPU µs a message, ${part}`, cpu(part));
  line("CPU µs a message, all", all);
  line("ratio to SQLite", (result) => all(result) / all(columns.SQLite as Result));
  line("acknowledged p50 ms", ({ ack_p50 }) => ack_p50);
  line("acknowledged p99 ms", ({ ack_p99 }) => ack_p99);
  line("delivered p50 ms", ({ delivered_p50 }) => delivered_p50);
  line("delivered p99 ms", ({ delivered_p99 }) => delivered_p99);
}
