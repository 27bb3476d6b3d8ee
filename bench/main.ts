/**
 * What Parley costs, beside the least that the runtime itself would cost in the same run.
 * Server on one core, generator on another, rate limits lifted, every message synced to disk.
 * The machine may be shared and noisy: read the ratios first.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodes } from "./nodes.ts";
import { generate, type Measured, startGenerator, startPinned } from "./process.ts";
import { type Seed, seed } from "./seed.ts";
import { typing } from "./web.ts";

const MAIN = new URL("../packages/server/src/main.ts", import.meta.url).pathname;
const FLOOR = new URL("./floor.ts", import.meta.url).pathname;
const LIMITS = JSON.stringify({
  messages_per_second: 0,
  operations_per_second: 0,
  sockets_per_user: 1000,
});

interface LoadResult {
  rate: number;
  cpu_us: number;
  messages: number;
  deliveries: number;
  ack_p50: number;
  ack_p99: number;
  delivered_p50: number;
  delivered_p99: number;
}

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

const print = (line = "") => process.stdout.write(`${line}\n`);
const folders: string[] = [];
const newFolder = () => {
  const folder = mkdtempSync(join(process.env.BENCH_DATA ?? tmpdir(), "parley-bench-"));
  folders.push(folder);
  return folder;
};

const scenarios: Record<string, () => Promise<void>> = {
  /** Conversations of two, every sender with a few messages under way. */
  async pairs() {
    const pairs = 200;
    const groups = Array.from({ length: pairs }, (_, pair) => [2 * pair, 2 * pair + 1]);
    await compare("conversations of two", 2 * pairs, groups, {
      senders: (made) =>
        made.conversations.map((conversation, pair) => ({ place: 2 * pair, conversation })),
      warmup: 50_000,
      messages: 150_000,
      window: 2,
      receivers: 2,
    });
  },

  /** One group of 500 connected members, twenty of whom write. */
  async group() {
    const members = Array.from({ length: 500 }, (_, place) => place);
    await compare("a group of 500", 500, [members], {
      senders: (made) =>
        members.slice(0, 20).map((place) => ({ place, conversation: made.conversations[0] ?? "" })),
      warmup: 1000,
      messages: 4000,
      window: 2,
      receivers: 500,
    });
  },

  /** Five hundred answers that stream at once, fifty chunks a second each. */
  async streams() {
    const people = 500;
    const dataDir = newFolder();
    const made = await seed(dataDir, {
      people,
      groups: Array.from({ length: people }, (_, place) => [place]),
      agents: "bench",
    });
    const providerPort = await freePort();
    const providers = {
      bench: {
        display_name: "Bench",
        protocol: "openai",
        base_url: `http://127.0.0.1:${providerPort}/v1`,
        model: "bench",
      },
    };
    const { tokens, conversations } = made;
    const subscriptions = Object.fromEntries(
      tokens.map((token, place) => [token, [conversations[place] ?? ""]]),
    );
    const plan = { tokens, conversations, providerPort, chunks: 500, pace: 20 };
    const floor = await streamed(FLOOR, plan, {
      FLOOR: JSON.stringify({ subscriptions, providerPort }),
    });
    const parley = await streamed(MAIN, plan, {
      PARLEY_DATA: dataDir,
      PARLEY_LIMITS: LIMITS,
      PARLEY_PROVIDERS: JSON.stringify(providers),
    });
    print(`500 streams of 50 chunks a second: ${parley.chunks} chunks, ${parley.deltas} deltas`);
    print("                            Parley      floor   ratio");
    row("seconds (10 at best)", parley.seconds, floor.seconds);
    row("CPU µs a chunk", parley.cpu_us / parley.chunks, floor.cpu_us / floor.chunks);
    row("first token p50 ms", parley.first_p50, floor.first_p50);
    row("first token p99 ms", parley.first_p99, floor.first_p99);
    row("later deltas p50 ms", parley.delta_p50, floor.delta_p50);
    row("later deltas p99 ms", parley.delta_p99, floor.delta_p99);
    row("worst hold-up ms", parley.worst_lag_ms, floor.worst_lag_ms);
  },

  /** Ten thousand sockets that only listen. */
  async idle() {
    const dataDir = newFolder();
    const people = 500;
    const made = await seed(dataDir, {
      people,
      groups: Array.from({ length: people / 2 }, (_, pair) => [2 * pair, 2 * pair + 1]),
    });
    await using server = await startPinned(MAIN, { PARLEY_DATA: dataDir, PARLEY_LIMITS: LIMITS });
    const before = server.memory();
    const tokens = Array.from({ length: 10_000 }, (_, index) => made.tokens[index % people] ?? "");
    const child = await startGenerator("idle", { url: server.url, tokens });
    const reader = child.stdout.getReader();
    await reader.read();
    const each = (server.memory() - before) / tokens.length / 1024;
    child.kill("SIGKILL");
    print(`10,000 idle connections: ${each.toFixed(1)} KB each`);
  },

  /** Keystrokes in the web client, in a conversation of ten thousand messages. */
  async typing() {
    const dataDir = newFolder();
    const messages = 10_000;
    const made = await seed(dataDir, { people: 2, groups: [[0, 1]], messages });
    await using server = await startPinned(MAIN, { PARLEY_DATA: dataDir, PARLEY_LIMITS: LIMITS });
    const [token = "", other = ""] = made.tokens;
    const [conversation = ""] = made.conversations;
    const table = await typing({ url: server.url, conversation, token, other, messages });
    for (const line of table) print(line);
  },

  /** Conversations of two whose people are on different nodes, all of it on one core. */
  nodes,

  /** The same calls with a hundred and with a million messages stored. */
  async size() {
    const costs: Record<string, number>[] = [];
    for (const messages of [100, 1_000_000]) {
      const dataDir = newFolder();
      const made = await seed(dataDir, { people: 2, groups: [[0, 1]], messages });
      await using server = await startPinned(MAIN, { PARLEY_DATA: dataDir, PARLEY_LIMITS: LIMITS });
      costs.push(
        await generate<Record<string, number>>("calls", {
          url: server.url,
          pid: server.pid,
          token: made.tokens[1],
          conversation: made.conversations[0],
          count: 1000,
        }),
      );
    }
    print("server CPU of one call, one at a time (µs)   100 stored   1,000,000 stored   ratio");
    for (const [name, small] of Object.entries(costs[0] ?? {})) {
      const large = costs[1]?.[name] ?? 0;
      print(
        `  ${name.padEnd(42)} ${fixed(small, 10)} ${fixed(large, 18)} ${fixed(large / small, 7, 2)}`,
      );
    }
  },
};

interface Plan {
  senders(made: Seed): { place: number; conversation: string }[];
  warmup: number;
  messages: number;
  window: number;
  receivers: number;
}

async function compare(title: string, people: number, groups: number[][], plan: Plan) {
  const dataDir = newFolder();
  const made = await seed(dataDir, { people, groups });
  const subscriptions: Record<string, string[]> = {};
  for (const [index, members] of groups.entries()) {
    for (const place of members) {
      subscriptions[made.tokens[place] ?? ""] = [made.conversations[index] ?? ""];
    }
  }
  const input = (server: Measured) => ({
    url: server.url,
    pid: server.pid,
    tokens: made.tokens,
    ...plan,
    senders: plan.senders(made),
  });
  const floor = await measured(FLOOR, { FLOOR: JSON.stringify({ subscriptions }) }, input);
  const parley = await measured(MAIN, { PARLEY_DATA: dataDir, PARLEY_LIMITS: LIMITS }, input);
  print(`${title}: ${plan.messages} messages, ${plan.messages * plan.receivers} deliveries`);
  print("                         Parley      floor   ratio");
  row("messages a second", parley.rate, floor.rate);
  row("CPU µs a message", parley.cpu_us / parley.messages, floor.cpu_us / floor.messages);
  row("CPU µs a delivery", parley.cpu_us / parley.deliveries, floor.cpu_us / floor.deliveries);
  row("acknowledged p50 ms", parley.ack_p50, floor.ack_p50);
  row("acknowledged p99 ms", parley.ack_p99, floor.ack_p99);
  row("delivered p50 ms", parley.delivered_p50, floor.delivered_p50);
  row("delivered p99 ms", parley.delivered_p99, floor.delivered_p99);
}

async function measured(
  script: string,
  env: Record<string, string>,
  input: (server: Measured) => object,
): Promise<LoadResult> {
  await using server = await startPinned(script, env);
  return await generate<LoadResult>("load", input(server));
}

async function streamed(
  script: string,
  plan: object,
  env: Record<string, string>,
): Promise<StreamResult> {
  await using server = await startPinned(script, env);
  const place = { url: server.url, pid: server.pid };
  // Short ones first: what is measured is a server that has been at work for a while.
  await generate<StreamResult>("streams", { ...plan, ...place, chunks: 100 });
  return await generate<StreamResult>("streams", { ...plan, ...place });
}

async function freePort(): Promise<number> {
  const probe = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { port } = probe;
  await probe.stop(true);
  if (port === undefined) throw new Error("no port is free");
  return port;
}

const fixed = (value: number, width: number, digits = 1) => value.toFixed(digits).padStart(width);
const row = (name: string, parley: number, floor: number) =>
  print(
    `  ${name.padEnd(20)} ${fixed(parley, 9)}  ${fixed(floor, 9)}  ${fixed(parley / floor, 6, 2)}`,
  );

try {
  const asked = process.argv.slice(2);
  for (const [name, run] of Object.entries(scenarios)) {
    if (asked.length > 0 && !asked.includes(name)) continue;
    await run();
    print();
  }
} finally {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
