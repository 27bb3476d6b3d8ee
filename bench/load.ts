import { join } from "node:path";
import { FLOOR, LIMITS, MAIN, range, temporaryFolder, WINDOWS } from "./environment.ts";
import { generate, type Measured, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { type Seed, seed } from "./seed.ts";

/** The generator's measurements of one window. */
interface LoadResult {
  rate: number;
  /** The share of its core that the generator used. */
  busy: number;
  cpu_us: number;
  messages: number;
  deliveries: number;
  ack_p50: number;
  ack_p99: number;
  delivered_p50: number;
  delivered_p99: number;
}

interface Plan {
  title: string;
  people: number;
  /** The members of each conversation, as indexes of the people. */
  groups: number[][];
  /** Who sends to which conversation; each sender keeps `window` messages in flight. */
  senders: { place: number; group: number }[];
  window: number;
  messages: number;
  /** Sockets that receive each message. */
  receivers: number;
  /** The unit that CPU is divided by, and the highest allowed ratio to the floor. */
  per: "message" | "delivery";
  goal: number;
}

/** Conversations of two. `senders * window` messages are in flight. */
export function pairs(senders: number, window: number, messages: number, goal: number) {
  const groups = range(senders).map((pair) => [2 * pair, 2 * pair + 1]);
  return compare({
    title: `conversations of two, ${senders * window} in flight`,
    people: 2 * senders,
    groups,
    senders: range(senders).map((pair) => ({ place: 2 * pair, group: pair })),
    window,
    messages,
    receivers: 2,
    per: "message",
    goal,
  });
}

/** One group in which all members are connected and some of them send. */
export function group(members: number, senders: number, messages: number, goal: number) {
  return compare({
    title: `a group of ${members}, ${senders} in flight`,
    people: members,
    groups: [range(members)],
    senders: range(senders).map((place) => ({ place, group: 0 })),
    window: 1,
    messages,
    receivers: members,
    per: "delivery",
    goal,
  });
}

/** Beyond it, the figures may be those of the generator. */
const MOST_BUSY = 0.9;

/** `storing` is the floor that also stores the messages. */
type Role = "floor" | "storing" | "parley";

async function compare(plan: Plan): Promise<Measurement[]> {
  using folder = temporaryFolder();
  const made = await seed(folder.path, plan);
  const topics = { subscriptions: subscriptions(plan, made) };
  await using floor = await startPinned(FLOOR, { FLOOR: JSON.stringify(topics) });
  const database = join(folder.path, "floor.db");
  await using storing = await startPinned(FLOOR, {
    FLOOR: JSON.stringify({ ...topics, database }),
  });
  await using parley = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
  });
  const results: Record<Role, LoadResult[]> = { floor: [], storing: [], parley: [] };
  // The first window is a warm-up.
  for (let window = 0; window <= WINDOWS; window++) {
    for (const [name, server] of Object.entries({ floor, storing, parley })) {
      const result = await generate<LoadResult>("load", input(plan, made, server));
      if (window > 0) results[name as Role].push(result);
    }
  }
  return rows(plan, results);
}

type Shape = Pick<Plan, "groups" | "senders" | "window" | "messages" | "receivers">;

const input = (plan: Shape, made: Seed, server: Measured) => ({
  url: server.url,
  pid: server.pid,
  tokens: made.tokens,
  senders: plan.senders.map(({ place, group: index }) => ({
    place,
    conversation: made.conversations[index],
  })),
  window: plan.window,
  messages: plan.messages,
  warmup: Math.ceil(plan.messages / 10),
  receivers: plan.receivers,
  lastMembers: plan.groups.map((members) => members.at(-1)),
});

function subscriptions({ groups }: Pick<Plan, "groups">, made: Seed): Record<string, string[]> {
  const topics: Record<string, string[]> = {};
  for (const [index, members] of groups.entries()) {
    for (const place of members) {
      topics[made.tokens[place] ?? ""] = [made.conversations[index] ?? ""];
    }
  }
  return topics;
}

function rows(
  { title: scenario, per, goal }: Plan,
  results: Record<Role, readonly LoadResult[]>,
): Measurement[] {
  const row = (
    metric: string,
    unit: string,
    value: (result: LoadResult) => number,
    floor: Role = "floor",
  ): Measurement => ({
    scenario,
    metric,
    unit,
    parley: results.parley.map(value),
    floor: results[floor].map(value),
  });
  const cpu = ({ cpu_us, messages, deliveries }: LoadResult) =>
    cpu_us / (per === "message" ? messages : deliveries);
  return [
    { ...row(`CPU per ${per}`, "µs", cpu), goal },
    row(`CPU per ${per}, floor stores`, "µs", cpu, "storing"),
    row("messages a second", "1/s", ({ rate }) => rate),
    row("acknowledged p50", "ms", ({ ack_p50 }) => ack_p50),
    row("acknowledged p99", "ms", ({ ack_p99 }) => ack_p99),
    row("delivered p50", "ms", ({ delivered_p50 }) => delivered_p50),
    row("delivered p99", "ms", ({ delivered_p99 }) => delivered_p99),
    { ...row("busy share of the generator", "", ({ busy }) => busy), most: MOST_BUSY },
  ];
}

/**
 * One message at a time: its CPU, and its time to delivery beyond one sync of the same disk. The floor
 * is the one that stores.
 */
export async function single(): Promise<Measurement[]> {
  using folder = temporaryFolder();
  const plan = {
    people: 2,
    groups: [[0, 1]],
    senders: [{ place: 0, group: 0 }],
    window: 1,
    messages: 2000,
    receivers: 2,
  };
  const made = await seed(folder.path, plan);
  await using storing = await startPinned(FLOOR, {
    FLOOR: JSON.stringify({
      subscriptions: subscriptions(plan, made),
      database: join(folder.path, "floor.db"),
    }),
  });
  await using parley = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
  });
  const run = (server: Measured, messages: number) =>
    generate<LoadResult>("load", input({ ...plan, messages }, made, server));
  const measured: { parley: LoadResult; floor: LoadResult; sync: number }[] = [];
  // As many as in the other scenarios: a server that has just started still compiles its code.
  for (const server of [storing, parley]) await run(server, 20_000);
  for (let window = 0; window < WINDOWS; window++) {
    measured.push({
      floor: await run(storing, plan.messages),
      parley: await run(parley, plan.messages),
      sync: (await generate<{ sync_p50: number }>("sync", { folder: folder.path })).sync_p50,
    });
  }
  const row = (metric: string, value: (result: LoadResult, sync: number) => number) => ({
    scenario: "one message at a time",
    metric,
    unit: "µs",
    parley: measured.map(({ parley: result, sync }) => value(result, sync)),
  });
  const withFloor = (metric: string, value: (result: LoadResult, sync: number) => number) => ({
    ...row(metric, value),
    floor: measured.map(({ floor, sync }) => value(floor, sync)),
  });
  const cpu = ({ cpu_us, messages }: LoadResult) => cpu_us / messages;
  const beyondSync = ({ delivered_p50 }: LoadResult, sync: number) => (delivered_p50 - sync) * 1000;
  return [
    { ...row("CPU per message", cpu), goal: 150 },
    { ...row("delivered beyond one disk sync, p50", beyondSync), goal: 150 },
    withFloor("CPU per message, floor stores", cpu),
    withFloor("delivered p50, floor stores", ({ delivered_p50 }) => delivered_p50 * 1000),
    row("one disk sync, p50", (_, sync) => sync * 1000),
  ];
}
