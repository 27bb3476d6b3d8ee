import { join } from "node:path";
import { FLOOR, LIMITS, MAIN, range, temporaryFolder, WINDOWS } from "./environment.ts";
import { freePort, generate, type Measured, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { seed } from "./seed.ts";

interface StreamResult {
  seconds: number;
  cpu_us: number;
  chunks: number;
  deltas: number;
  first_p50: number;
  first_p99: number;
  delta_p50: number;
  delta_p99: number;
  worst_lag_ms: number;
}

/** `storing` is the floor that also stores questions and answers. */
type Role = "floor" | "storing" | "parley";

const CHUNKS = 250;
const PACE_MS = 20;

/** `count` answers stream at the same time, fifty chunks a second each, compared with a bare relay. */
export async function streams(count: number, goal: number): Promise<Measurement[]> {
  using folder = temporaryFolder();
  const made = await seed(folder.path, {
    people: count,
    groups: range(count).map((place) => [place]),
    agents: "bench",
  });
  const providerPort = await freePort();
  const { tokens, conversations } = made;
  const subscriptions = Object.fromEntries(
    tokens.map((token, place) => [token, [conversations[place] ?? ""]]),
  );
  await using floor = await startPinned(FLOOR, {
    FLOOR: JSON.stringify({ subscriptions, providerPort }),
  });
  const database = join(folder.path, "floor.db");
  await using storing = await startPinned(FLOOR, {
    FLOOR: JSON.stringify({ subscriptions, providerPort, database }),
  });
  await using parley = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
    PARLEY_PROVIDERS: JSON.stringify({
      bench: {
        display_name: "Bench",
        protocol: "openai",
        base_url: `http://127.0.0.1:${providerPort}/v1`,
        model: "bench",
      },
    }),
  });
  const run = ({ url, pid }: Measured, chunks: number) =>
    generate<StreamResult>("streams", {
      url,
      pid,
      tokens,
      conversations,
      providerPort,
      chunks,
      paceMs: PACE_MS,
    });
  const results: Record<Role, StreamResult[]> = { floor: [], storing: [], parley: [] };
  for (const server of [floor, storing, parley]) await run(server, 100);
  for (let window = 0; window < WINDOWS; window++) {
    for (const [name, server] of Object.entries({ floor, storing, parley })) {
      results[name as Role].push(await run(server, CHUNKS));
    }
  }
  const row = (
    metric: string,
    unit: string,
    value: (result: StreamResult) => number,
    relay: Role = "floor",
  ) => ({
    scenario: `${count} streams of 50 chunks a second`,
    metric,
    unit,
    parley: results.parley.map(value),
    floor: results[relay].map(value),
  });
  const cpu = ({ cpu_us, chunks }: StreamResult) => cpu_us / chunks;
  return [
    { ...row("CPU per chunk", "µs", cpu), goal },
    row("CPU per chunk, floor stores", "µs", cpu, "storing"),
    row("duration", "s", ({ seconds }) => seconds),
    row("first token p50", "ms", ({ first_p50 }) => first_p50),
    row("first token p99", "ms", ({ first_p99 }) => first_p99),
    row("later deltas p99", "ms", ({ delta_p99 }) => delta_p99),
    row("longest delay of the event loop", "ms", ({ worst_lag_ms }) => worst_lag_ms),
  ];
}
