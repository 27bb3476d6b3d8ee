import { toolList } from "../packages/server/src/agents/tools/tool-list.ts";
import { functionName } from "../packages/server/src/rules/tool-names.ts";
import { FLOOR, LIMITS, MAIN, range, temporaryFolder, WINDOWS } from "./environment.ts";
import { freePort, generate, type Measured, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { seed } from "./seed.ts";
import { type ToolPlan, testTools } from "./tool-server.ts";
import { ROUNDS, type ToolTurnsResult } from "./tool-turns.ts";

const CHUNKS = 50;
const PACE_MS = 20;
/** The highest allowed delay of the event loop. */
const MAX_DELAY_MS = 50;
/** As long as the requests with the longest tools and results can be. */
const CONTEXT_TOKENS = 2_000_000;
const TOOL_SERVER = "bench";

/**
 * `turns` agents of as many people get a message at once. Each calls tools in three rounds, one of a
 * server in every round and a built-in one, and then answers. The people of each window are others,
 * so that every turn begins with a new connection to the tool server.
 */
export async function tools(title: string, turns: number, plan: ToolPlan): Promise<Measurement[]> {
  using folder = temporaryFolder();
  const [providerPort, toolServerPort] = [await freePort(), await freePort()];
  const people = turns * (WINDOWS + 1);
  const made = await seed(folder.path, {
    people,
    groups: range(people).map((place) => [place]),
    agents: "bench",
    toolServer: {
      name: TOOL_SERVER,
      url: `http://127.0.0.1:${toolServerPort}/mcp`,
      tools: toolList(testTools(plan)),
    },
  });
  const { tokens, conversations } = made;
  const subscriptions = Object.fromEntries(
    tokens.map((token, place) => [token, [conversations[place] ?? ""]]),
  );
  await using floor = await startPinned(FLOOR, {
    FLOOR: JSON.stringify({ subscriptions, providerPort, toolServerPort }),
  });
  await using parley = await startParley(folder.path, providerPort);
  const granted = functionName({ server_id: "", server: TOOL_SERVER, tool: "lookup_0" });
  const run = ({ url, pid }: Measured, window: number) => {
    const some = [window * turns, (window + 1) * turns] as const;
    return generate<ToolTurnsResult>("tool_turns", {
      url,
      pid,
      tokens: tokens.slice(...some),
      conversations: conversations.slice(...some),
      providerPort,
      toolServerPort,
      plan,
      functions: { granted, builtIn: "read_messages" },
      chunks: CHUNKS,
      paceMs: PACE_MS,
    });
  };
  const results = { floor: [] as ToolTurnsResult[], parley: [] as ToolTurnsResult[] };
  // The first window is a warm-up.
  for (let window = 0; window <= WINDOWS; window++) {
    const [relay, ours] = [await run(floor, window), await run(parley, window)];
    if (window === 0) continue;
    results.floor.push(relay);
    results.parley.push(ours);
  }
  return rows(`${turns} turns at once, ${ROUNDS} rounds of ${title}`, turns, results);
}

const startParley = (dataDir: string, providerPort: number) =>
  startPinned(MAIN, {
    PARLEY_DATA: dataDir,
    PARLEY_LIMITS: LIMITS,
    PARLEY_PRIVATE_ADDRESSES: "allow",
    PARLEY_PROVIDERS: JSON.stringify({
      bench: {
        display_name: "Bench",
        protocol: "openai",
        base_url: `http://127.0.0.1:${providerPort}/v1`,
        model: "bench",
        context_tokens: CONTEXT_TOKENS,
      },
    }),
  });

function rows(
  scenario: string,
  turns: number,
  { parley, floor }: Record<"parley" | "floor", readonly ToolTurnsResult[]>,
): Measurement[] {
  const row = (metric: string, unit: string, value: (result: ToolTurnsResult) => number) => ({
    scenario,
    metric,
    unit,
    parley: parley.map(value),
    floor: floor.map(value),
  });
  const delay = ({ worst_lag_ms }: ToolTurnsResult) => worst_lag_ms;
  return [
    row("CPU per turn", "µs", ({ cpu_us }) => cpu_us / turns),
    row("duration of a turn p50", "ms", ({ turn_p50 }) => turn_p50),
    row("duration of a turn p99", "ms", ({ turn_p99 }) => turn_p99),
    row("until the last is complete", "s", ({ seconds }) => seconds),
    row("delay of the loop, and of the relay's", "ms", delay),
    {
      scenario,
      metric: "longest delay of the event loop",
      unit: "ms",
      parley: parley.map(delay),
      goal: MAX_DELAY_MS,
    },
  ];
}
