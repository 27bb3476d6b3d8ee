import { join } from "node:path";
import { LIMITS, MAIN, range, temporaryFolder, WINDOWS } from "./environment.ts";
import { freePort, generate, type Measured, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { type Seed, seed } from "./seed.ts";

const SERVICE_KEY = `pls_${"bench-key-".repeat(4)}`;
const PAIRS = 100;

export interface Product extends AsyncDisposable {
  readonly server: Measured;
  readonly made: Seed;
}

/** A server with conversations of two and with a service key. */
export async function startProduct(): Promise<Product> {
  const folder = temporaryFolder();
  const made = await seed(folder.path, {
    people: 2 * PAIRS,
    groups: range(PAIRS).map((pair) => [2 * pair, 2 * pair + 1]),
  });
  const keyFile = join(folder.path, "service-key");
  await Bun.write(keyFile, SERVICE_KEY, { mode: 0o600 });
  const server = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
    PARLEY_SERVICE_KEY_FILE: keyFile,
    PARLEY_PRIVATE_ADDRESSES: "allow",
  });
  return {
    server,
    made,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

const USERS = 100_000;
const BATCH = 500;

interface UsersResult {
  seconds: number;
  cpu_us: number;
  /** Acknowledgement of one message at a time, while users are created and before. */
  busy: { p50: number; p99: number };
  calm: { p50: number; p99: number };
}

/** A product creates accounts for all of its users, 500 in a call, while one person sends messages. */
export async function users(): Promise<Measurement[]> {
  await using product = await startProduct();
  const { server, made } = product;
  const count = USERS / WINDOWS;
  const results: UsersResult[] = [];
  for (let window = 0; window < WINDOWS; window++) {
    results.push(
      await generate<UsersResult>("users", {
        url: server.url,
        pid: server.pid,
        key: SERVICE_KEY,
        token: made.tokens[0],
        conversation: made.conversations[0],
        from: window * count,
        count,
        batch: BATCH,
      }),
    );
  }
  const scenario = `${USERS.toLocaleString("en")} users, ${BATCH} in a call`;
  const total = results.reduce((sum, { seconds }) => sum + seconds, 0);
  const send = (metric: string, share: "p50" | "p99"): Measurement => ({
    scenario,
    metric: `send meanwhile and before, ${metric}`,
    unit: "ms",
    parley: results.map(({ busy }) => busy[share]),
    floor: results.map(({ calm }) => calm[share]),
  });
  return [
    { scenario, metric: "all users", unit: "s", parley: [total], goal: 120 },
    {
      scenario,
      metric: "users a second",
      unit: "1/s",
      parley: results.map(({ seconds }) => count / seconds),
    },
    {
      scenario,
      metric: "CPU per user",
      unit: "µs",
      parley: results.map(({ cpu_us }) => cpu_us / count),
    },
    send("p50", "p50"),
    send("p99", "p99"),
  ];
}

const DELIVERIES_PER_MINUTE = 10_000;
/** A little more than the goal needs, so that the last deliveries arrive in time. */
const MESSAGES_PER_SECOND = 180;
/** Two seconds: the latency of a shared disk drifts, so that windows compared with each other are short. */
const MESSAGES = 360;
const SHORT_WINDOWS = 3 * WINDOWS;

export interface PacedResult {
  /** Until the last message was acknowledged and delivered everywhere. */
  seconds: number;
  cpu_us: number;
  ack_p50: number;
  ack_p99: number;
  delivered_p50: number;
  /** How late the generator itself was with a message. */
  late_p99: number;
}

export const generatePaced = (
  { server, made }: Pick<Product, "server" | "made">,
  hookPort?: number,
) =>
  generate<PacedResult>("paced", {
    url: server.url,
    pid: server.pid,
    tokens: made.tokens,
    senders: made.conversations.map((conversation, pair) => ({ place: 2 * pair, conversation })),
    messages: MESSAGES,
    perSecond: MESSAGES_PER_SECOND,
    receivers: 2,
    ...(hookPort && { hookPort }),
  });

/** Messages at a fixed rate, on a server with a webhook that receives each of them, and on one without. */
export async function webhooks(): Promise<Measurement[]> {
  await using plain = await startProduct();
  await using hooked = await startProduct();
  const hookPort = await freePort();
  await createWebhook(hooked.server.url, `http://127.0.0.1:${hookPort}/`);
  const results = { without: [] as PacedResult[], with: [] as PacedResult[] };
  // The first window is a warm-up.
  for (let window = 0; window <= SHORT_WINDOWS; window++) {
    const [without, withHooks] = [
      await generatePaced(plain),
      await generatePaced(hooked, hookPort),
    ];
    if (window === 0) continue;
    results.without.push(without);
    results.with.push(withHooks);
  }
  return webhookRows(results.with, results.without);
}

function webhookRows(
  withHooks: readonly PacedResult[],
  without: readonly PacedResult[],
): Measurement[] {
  const scenario = `${MESSAGES_PER_SECOND} messages a second, with and without a webhook`;
  const row = (
    metric: string,
    unit: string,
    value: (result: PacedResult) => number,
    goal?: number,
  ): Measurement => ({
    scenario,
    metric,
    unit,
    parley: withHooks.map(value),
    floor: without.map(value),
    ...(goal !== undefined && { goal }),
  });
  return [
    {
      scenario,
      metric: `${DELIVERIES_PER_MINUTE.toLocaleString("en")} deliveries`,
      unit: "s",
      parley: withHooks.map(({ seconds }) => (seconds / MESSAGES) * DELIVERIES_PER_MINUTE),
      goal: 60,
    },
    row("acknowledged p50", "ms", ({ ack_p50 }) => ack_p50, 1.1),
    row("acknowledged p99", "ms", ({ ack_p99 }) => ack_p99),
    row("delivered p50", "ms", ({ delivered_p50 }) => delivered_p50),
    row("CPU per message", "µs", ({ cpu_us }) => cpu_us / MESSAGES),
  ];
}

async function createWebhook(serverUrl: string, url: string): Promise<void> {
  const response = await fetch(`${serverUrl}/api/createWebhook`, {
    method: "POST",
    headers: { authorization: `Bearer ${SERVICE_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ url, events: ["events.messageNew"] }),
  });
  if (!response.ok) throw new Error(`createWebhook failed: ${await response.text()}`);
}
