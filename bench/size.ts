import { LIMITS, MAIN, range, temporaryFolder } from "./environment.ts";
import { cpuOf } from "./measure.ts";
import { generate, startGenerator, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { seed } from "./seed.ts";
import { measureTyping } from "./web.ts";

const IDLE_SOCKETS = 10_000;

interface Growth {
  /** What grows, and how far. */
  readonly what: string;
  readonly sizes: readonly [from: number, to: number];
  readonly plan: (size: number) => Parameters<typeof seed>[1];
}

const growths: readonly Growth[] = [
  {
    what: "messages stored",
    sizes: [1000, Number(process.env.BENCH_MESSAGES ?? 1_000_000)],
    plan: (messages) => ({ people: 2, groups: [[0, 1]], messages }),
  },
  {
    what: "members of a group",
    sizes: [2, 5000],
    plan: (members) => ({ people: members, groups: [range(members)] }),
  },
  {
    what: "conversations of a person",
    sizes: [10, 20_000],
    plan: (conversations) => ({ people: 2, groups: range(conversations).map(() => [0, 1]) }),
  },
];

/** The same calls, one at a time, at two sizes. The exponent says how their cost grows: 0 does not, 1 as the size does. */
export async function size(): Promise<Measurement[]> {
  const rows: Measurement[] = [];
  for (const { what, sizes, plan } of growths) {
    const [from, to] = sizes;
    const small = await costs(plan(from));
    const large = await costs(plan(to));
    const scenario = `${what}: ${to.toLocaleString("en")}, compared with ${from.toLocaleString("en")}`;
    for (const [name, cost] of Object.entries(large)) {
      const before = small[name] ?? Number.NaN;
      const exponent = Math.log(cost / before) / Math.log(to / from);
      rows.push(
        {
          scenario,
          metric: `CPU per ${name}`,
          unit: "µs",
          parley: [cost],
          floor: [before],
        },
        { scenario, metric: `exponent of ${name}`, unit: "", parley: [exponent] },
      );
    }
  }
  return rows;
}

async function costs(plan: Parameters<typeof seed>[1]): Promise<Record<string, number>> {
  using folder = temporaryFolder();
  const made = await seed(folder.path, plan);
  await using server = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
  });
  return await generate<Record<string, number>>("calls", {
    url: server.url,
    pid: server.pid,
    token: made.tokens[1],
    conversation: made.conversations[0],
    count: 1000,
  });
}

const REST_SECONDS = 60;

/** The share of a core that a server uses which nobody uses. */
export async function unused(): Promise<Measurement[]> {
  using folder = temporaryFolder();
  await using server = await startPinned(MAIN, { PARLEY_DATA: folder.path });
  // After a start, the runtime still compiles and collects.
  await Bun.sleep(15_000);
  const before = cpuOf(server.pid);
  await Bun.sleep(REST_SECONDS * 1000);
  const share = (cpuOf(server.pid) - before) / 1e6 / REST_SECONDS;
  const common = { scenario: "a server that nobody uses", unit: "%", goal: 0.2 };
  return [{ ...common, metric: "share of a core", parley: [100 * share] }];
}

/** Memory of ten thousand idle sockets. */
export async function idle(): Promise<Measurement[]> {
  using folder = temporaryFolder();
  const people = 500;
  const groups = range(people / 2).map((pair) => [2 * pair, 2 * pair + 1]);
  const made = await seed(folder.path, { people, groups });
  await using server = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
  });
  const before = server.memory();
  const tokens = range(IDLE_SOCKETS).map((index) => made.tokens[index % people] ?? "");
  const child = await startGenerator("idle", { url: server.url, tokens });
  await child.stdout.getReader().read();
  const each = (server.memory() - before) / tokens.length / 1024;
  child.kill("SIGKILL");
  return [
    { scenario: "10,000 idle sockets", metric: "memory per socket", unit: "KB", parley: [each] },
  ];
}

/** Times of keystrokes in the web client, in a conversation of ten thousand messages. */
export async function typing(): Promise<string[]> {
  using folder = temporaryFolder();
  const messages = 10_000;
  const made = await seed(folder.path, { people: 2, groups: [[0, 1]], messages });
  await using server = await startPinned(MAIN, {
    PARLEY_DATA: folder.path,
    PARLEY_LIMITS: LIMITS,
  });
  const [token = "", other = ""] = made.tokens;
  const [conversation = ""] = made.conversations;
  return await measureTyping({ url: server.url, conversation, token, other, messages });
}
