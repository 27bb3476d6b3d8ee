import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const MAIN = new URL("../../packages/server/src/main.ts", import.meta.url).pathname;

/** A real server in a process of its own, with a data folder of its own. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  readonly dataDir: string;
  /** Everything it has printed so far. */
  output(): string;
  /** Ends it as an operator would, and returns its exit code. */
  stop(): Promise<number>;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Starts it again on the same data, after `stop` or `kill`. */
  restart(): Promise<void>;
}

export type Environment = Record<string, string>;

/** Overrides limits by name. */
export const limits = (values: Record<string, number>): Environment => ({
  PARLEY_LIMITS: JSON.stringify(values),
});

/** For tests that call faster than people do. */
export const noRates = limits({ messages_per_second: 0, operations_per_second: 0 });

export async function startServer(env: Environment = {}): Promise<TestServer> {
  const dataDir = env.PARLEY_DATA ?? mkdtempSync(join(tmpdir(), "parley-test-"));
  let running = await spawnServer({ ...env, PARLEY_DATA: dataDir });
  return {
    get url() {
      return running.url;
    },
    get pid() {
      return running.process.pid;
    },
    dataDir,
    output: () => running.output(),
    stop: async () => {
      running.process.kill("SIGTERM");
      return running.process.exited;
    },
    kill: async () => {
      running.process.kill("SIGKILL");
      await running.process.exited;
    },
    restart: async () => {
      running = await spawnServer({ ...env, PARLEY_DATA: dataDir });
    },
    [Symbol.asyncDispose]: async () => {
      running.process.kill("SIGKILL");
      await running.process.exited;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function spawnServer(env: Environment) {
  const child = spawnMain({ PORT: "0", PARLEY_LOG: "warn", ...env });
  const read = collect(child);
  const url = await read.until(/listens on (\S+)/);
  if (url === null) throw new Error(`the server did not start: ${read.output()}`);
  return { process: child, url, output: read.output };
}

/** Runs the program with just this environment; for starts that are meant to fail. */
export function spawnMain(env: Environment, args: string[] = []) {
  return Bun.spawn([process.execPath, MAIN, ...args], {
    env: { PATH: process.env.PATH ?? "", BUN_CONFIG_MAX_HTTP_REQUESTS: "65336", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
}

function collect(child: ReturnType<typeof spawnMain>) {
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
    /** What the pattern captured, or null when the output ended without it. */
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
