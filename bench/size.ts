import { LIMITS, MAIN, range, temporaryFolder } from "./environment.ts";
import { generate, startGenerator, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import { seed } from "./seed.ts";
import { measureTyping } from "./web.ts";

const IDLE_SOCKETS = 10_000;

/** The same calls, one at a time, with a hundred and with a million messages stored. */
export async function size(): Promise<Measurement[]> {
  const small = await costs(100);
  const large = await costs(1_000_000);
  return Object.entries(large).map(([name, cpu_us]) => ({
    scenario: "1,000,000 messages stored, compared with 100",
    metric: `CPU per ${name}`,
    unit: "µs",
    parley: [cpu_us],
    floor: [small[name] ?? Number.NaN],
  }));
}

async function costs(messages: number): Promise<Record<string, number>> {
  using folder = temporaryFolder();
  const made = await seed(folder.path, { people: 2, groups: [[0, 1]], messages });
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
