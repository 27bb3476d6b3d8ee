import { connectAll, cpuOf, lag, percentile } from "./measure.ts";
import { askForCalls, startProvider } from "./provider.ts";
import { startToolServer, type ToolPlan } from "./tool-server.ts";

/** Times that the model asks for calls before it answers. */
export const ROUNDS = 3;

export interface ToolTurns {
  url: string;
  pid: number;
  tokens: string[];
  conversations: string[];
  providerPort: number;
  toolServerPort: number;
  plan: ToolPlan;
  /** The names by which the model calls a tool of the server, and a built-in one. */
  functions: { granted: string; builtIn: string };
  /** Of the answer after the calls. */
  chunks: number;
  paceMs: number;
}

export interface ToolTurnsResult {
  /** Until the last turn was complete. */
  seconds: number;
  cpu_us: number;
  turn_p50: number;
  turn_p99: number;
  worst_lag_ms: number;
}

/** Every person asks their agent at once. Each answer takes rounds of tool calls first. */
export async function toolTurns(input: ToolTurns): Promise<ToolTurnsResult> {
  const { url, pid, tokens, conversations } = input;
  const turns = conversations.length;
  const done = Promise.withResolvers<void>();
  const toolServer = startToolServer(input.toolServerPort, input.plan);
  const provider = startToolProvider(input, done.reject);
  const times: number[] = [];
  let started = 0;
  const sockets = await connectAll(url, tokens, (frame) => {
    const text = frame.toString();
    if (!text.startsWith('{"method":"events.messageComplete"')) return;
    if (!text.includes('"status":"complete"')) done.reject(new Error(text.slice(0, 400)));
    times.push(performance.now() - started);
    if (times.length === turns) done.resolve();
  });
  await lag(url);
  const cpu = cpuOf(pid);
  started = performance.now();
  for (const [place, conversation_id] of conversations.entries()) {
    const params = { conversation_id, content: "what is open for this account?" };
    sockets[place]?.send(JSON.stringify({ id: 1, method: "messages.send", params }));
  }
  await done.promise;
  const seconds = (performance.now() - started) / 1000;
  const cpu_us = cpuOf(pid) - cpu;
  const worst_lag_ms = (await lag(url)) * 1000;
  if (toolServer.calls() !== turns * ROUNDS) throw new Error(`${toolServer.calls()} tool calls`);
  provider.stop();
  toolServer.stop();
  const sorted = Float64Array.from(times);
  return {
    seconds,
    cpu_us,
    turn_p50: percentile(sorted, 0.5),
    turn_p99: percentile(sorted, 0.99),
    worst_lag_ms,
  };
}

interface ModelMessage {
  role: string;
  content: unknown;
  tool_calls?: unknown[];
}

/** Asks for a call of the server's tool in each round, and in the first one also for a built-in tool. */
function startToolProvider(
  { providerPort, chunks, paceMs, functions }: ToolTurns,
  onFailure: (error: Error) => void,
) {
  return startProvider(providerPort, chunks, paceMs, async (request) => {
    const { messages } = (await request.json()) as { messages: ModelMessage[] };
    const failed = messages.find(
      ({ role, content }) => role === "tool" && `${content}`.startsWith("The call"),
    );
    if (failed) onFailure(new Error(`a call failed: ${failed.content}`));
    const round = messages.filter(({ tool_calls }) => tool_calls).length;
    if (round === ROUNDS) return undefined;
    const lookup = { name: functions.granted, arguments: { query: `account ${round}` } };
    const read = { name: functions.builtIn, arguments: { limit: 10 } };
    return askForCalls(round === 0 ? [lookup, read] : [lookup]);
  });
}
