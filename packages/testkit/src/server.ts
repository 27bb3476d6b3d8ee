import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { INITIAL_MOVE, moveClock, receiveClockReply } from "./clock.ts";
import { registerNodes } from "./nodes.ts";
import { databaseFor, dropDatabase } from "./postgres.ts";
import { executable } from "./program.ts";
import { until } from "./until.ts";

/** The program of a checkout, for tests of what differs from the executable. */
export const SOURCES: readonly string[] = [
  process.execPath,
  `--preload=${new URL("./movable-clock.ts", import.meta.url).pathname}`,
  new URL("../../server/src/main.ts", import.meta.url).pathname,
];
/** Settings of every test server: quiet, on a free port, and an undeclared failure is an internal error. */
const DEFAULTS = { PORT: "0", PARLEY_LOG: "warn", PARLEY_STRICT_ERRORS: "on" };
/** A server that does not start in this time is ended, so that its test fails with what it printed. */
const START_TIMEOUT_MS = 120_000;
const KEY = Buffer.alloc(32, 7).toString("base64");

/** A real server in its own process, with its own data folder. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly dataDir: string;
  /** Everything that has arrived of what it printed. */
  output(): string;
  /** Waits for a match in what it prints, which may arrive after the reply to a call. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Runs a command of the program on its data, and returns what it prints with `--json`. */
  command(...args: string[]): Promise<unknown>;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Starts it on the same data, after `stop` or `kill`. */
  restart(): Promise<void>;
  /** The time of its clock. */
  now(): number;
  /**
   * Moves its clock forward, for example to the end of a lease. Resolves when the timers that became
   * due have fired, each once; what they started may still be under way. Periodic work that was under way
   * is not started again. PostgreSQL has its own clock.
   */
  moveClock(ms: number): Promise<void>;
  /**
   * Moves its clock in steps until the condition holds: time passes some ten times faster, so that calls
   * that are under way still have enough of it.
   */
  moveClockUntil(condition: () => unknown, what: string, stepMs?: number): Promise<void>;
  /** Moves its clock in such steps until the work has ended. Returns what that returns. */
  moveClockDuring<Result>(work: Promise<Result>, stepMs?: number): Promise<Result>;
}

export type Environment = Record<string, string>;

/** A setting that overrides limits by name. */
export const limits = (values: Record<string, number>): Environment => ({
  PARLEY_LIMITS: JSON.stringify(values),
});

/** Lifts all rates. */
export const noRates = limits({
  messages_per_second: 0,
  operations_per_second: 0,
  service_operations_per_second: 0,
  signups_per_hour: 0,
  reports_per_hour: 0,
  exports_per_hour: 0,
  hooks_per_hour: 0,
  strangers_per_hour: 0,
  searches_per_second: 0,
  upload_bytes_per_day: 0,
  image_pixels_per_hour: 0,
  uploads_at_once: 1000,
});

/** Set while tests run on two nodes: the PostgreSQL and the NATS of the nodes. */
const services = process.env.PARLEY_TEST_SERVICES
  ? (JSON.parse(process.env.PARLEY_TEST_SERVICES) as { postgres: string; nats: string })
  : null;
export const onSeveralNodes = services !== null;

/**
 * Starts one node on SQLite; while tests run on several nodes, two that take calls in turn. They run
 * an executable that saves CPU time: it is loaded faster than the sources, and hashes passwords faster.
 */
export async function startServer(
  env: Environment = {},
  program: readonly string[] = [executable()],
): Promise<TestServer> {
  const dataDir = env.PARLEY_DATA ?? mkdtempSync(join(tmpdir(), "parley-test-"));
  const data = { ...env, PARLEY_DATA: dataDir };
  const own = services && (await sharedSettings(services, dataDir));
  let movedMs = 0;
  const start = () =>
    spawnServers(own ? 2 : 1, { ...own, ...data, [INITIAL_MOVE]: `${movedMs}` }, program);
  let running = await start();
  const first = () => running[0] as Spawned;
  const all = async (signal: NodeJS.Signals) => {
    for (const { process } of running) process.kill(signal);
    return Math.max(...(await Promise.all(running.map(({ process }) => process.exited))));
  };
  const known = () =>
    registerNodes(
      first().url,
      running.map(({ url }) => url),
    );
  known();
  const move = async (ms: number) => {
    movedMs += ms;
    await Promise.all(running.map(({ process }) => moveClock(process, ms)));
  };
  const moveUntil: TestServer["moveClockUntil"] = (condition, what, stepMs = 250) =>
    until(async () => (await condition()) || (await move(stepMs)), what);
  const output = () => running.map((each) => each.output()).join("");
  return {
    get url() {
      return first().url;
    },
    get pid() {
      return first().process.pid;
    },
    dataDir,
    output,
    printed: async (pattern) => {
      await until(() => pattern.test(output()), `${pattern} is printed`);
      return pattern.exec(output()) as RegExpExecArray;
    },
    command: async (...args) => {
      const { code, stdout, stderr } = await runMain([...args, "--json"], { ...own, ...data });
      if (code !== 0) throw new Error(`${args.join(" ")} failed: ${stderr}`);
      return JSON.parse(stdout);
    },
    stop: () => all("SIGTERM"),
    kill: async () => void (await all("SIGKILL")),
    restart: async () => {
      running = await start();
      known();
    },
    now: () => Date.now() + movedMs,
    moveClock: move,
    moveClockUntil: moveUntil,
    moveClockDuring: async (work, stepMs) => {
      let isOver = false;
      const end = () => {
        isOver = true;
      };
      work.then(end, end);
      await moveUntil(() => isOver, "the end of the work", stepMs);
      return work;
    },
    [Symbol.asyncDispose]: async () => {
      await all("SIGKILL");
      if (services) await dropDatabase(services.postgres, dataDir);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** The settings that all nodes share. The database belongs to the data folder, across restarts. */
const sharedSettings = async (
  { postgres, nats }: { postgres: string; nats: string },
  dataDir: string,
): Promise<Environment> => ({
  DATABASE_URL: await databaseFor(postgres, dataDir),
  NATS_URL: nats,
  PARLEY_MASTER_KEY: KEY,
  PARLEY_FILES: `disk:${join(dataDir, "files")}`,
});

type Spawned = Awaited<ReturnType<typeof spawnServer>>;

/** All or none: none runs on if another one did not start. */
async function spawnServers(
  count: number,
  env: Environment,
  program: readonly string[],
): Promise<Spawned[]> {
  const spawning = Array.from({ length: count }, () => spawnServer(env, program));
  try {
    return await Promise.all(spawning);
  } catch (error) {
    for (const each of await Promise.allSettled(spawning)) {
      if (each.status === "fulfilled") each.value.process.kill("SIGKILL");
    }
    throw error;
  }
}

async function spawnServer(env: Environment, program: readonly string[]) {
  const child = spawnMain({ ...DEFAULTS, ...env }, [], program);
  const read = collect(child);
  const late = setTimeout(() => child.kill("SIGKILL"), START_TIMEOUT_MS);
  const url = await read.until(/listens on (\S+)/);
  clearTimeout(late);
  if (url === null) throw new Error(`the server did not start: ${read.output()}`);
  return { process: child, url, output: read.output };
}

/** Runs the program with only this environment. */
export function spawnMain(
  env: Environment,
  args: string[] = [],
  program: readonly string[] = [executable()],
) {
  return Bun.spawn([...program, ...args], {
    env: { PATH: process.env.PATH ?? "", BUN_CONFIG_MAX_HTTP_REQUESTS: "65336", ...env },
    stdout: "pipe",
    stderr: "pipe",
    ipc: receiveClockReply,
  });
}

/** Runs a command of the program to its end, with only this environment. */
export async function runMain(args: string[], env: Environment = {}, program = [executable()]) {
  const child = spawnMain(env, args, program);
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Collects the output of a process, and lets a test wait for a line. */
export function collect(child: ReturnType<typeof spawnMain>) {
  let output = "";
  let check = () => {};
  let open = 2;
  const drain = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      output += decoder.decode(chunk, { stream: true });
      check();
    }
    open--;
    check();
  };
  void drain(child.stdout);
  void drain(child.stderr);
  return {
    output: () => output,
    /** The capture of the pattern, or null if the output ends without a match. */
    until: (pattern: RegExp) =>
      new Promise<string | null>((resolve) => {
        check = () => {
          const match = pattern.exec(output);
          if (match) resolve(match[1] ?? "");
          else if (open === 0) resolve(null);
        };
        check();
      }),
  };
}
