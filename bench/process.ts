import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SERVER_CORE = "0";
const GENERATOR_CORE = "1";

/** A running server, pinned to the core of the servers. */
export interface Measured extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** Resident memory, in bytes. */
  memory(): number;
}

/** Starts a script of Bun, or an executable. */
export async function startPinned(
  program: string,
  env: Record<string, string> = {},
): Promise<Measured> {
  const command = program.endsWith(".ts") ? [process.execPath, program] : [program];
  const child = Bun.spawn(["taskset", "-c", SERVER_CORE, ...command], {
    env: {
      PATH: process.env.PATH ?? "",
      // Without it, Bun allows at most 256 concurrent calls to providers.
      BUN_CONFIG_MAX_HTTP_REQUESTS: "65336",
      PORT: "0",
      PARLEY_LOG: "warn",
      ...env,
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  const url = await firstMatch(child.stdout, /listens on (\S+)/);
  return {
    url,
    pid: child.pid,
    memory: () => {
      const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
      return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Pins a process, and those it starts later, to the core of the servers. */
export function onServerCore(pid: number): void {
  Bun.spawnSync(["taskset", "-a", "-p", "-c", SERVER_CORE, `${pid}`], { stdout: "ignore" });
}

/** Starts a scenario of the generator on the other core. Its input is a file, because it can be long. */
export async function startGenerator(scenario: string, input: object, nice = 0) {
  const folder = mkdtempSync(join(tmpdir(), "parley-load-"));
  const file = join(folder, "input.json");
  await Bun.write(file, JSON.stringify(input));
  const script = new URL("./generator.ts", import.meta.url).pathname;
  const pinned = ["nice", "-n", `${nice}`, "taskset", "-c", GENERATOR_CORE];
  return Bun.spawn([...pinned, process.execPath, script, scenario, file], {
    stdout: "pipe",
    stderr: "inherit",
    onExit: () => rmSync(folder, { recursive: true, force: true }),
  });
}

/**
 * Runs a scenario of the generator and returns its measurements. A scenario that only makes load beside
 * another one has a high `nice`, so that it does not delay the one that measures.
 */
export async function generate<Result>(
  scenario: string,
  input: object,
  nice?: number,
): Promise<Result> {
  const child = await startGenerator(scenario, input, nice);
  const output = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`the generator failed: ${scenario}`);
  return JSON.parse(output) as Result;
}

async function firstMatch(stream: ReadableStream<Uint8Array>, pattern: RegExp): Promise<string> {
  let text = "";
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  while (true) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the server did not start: ${text}`);
    text += decoder.decode(value, { stream: true });
    const found = pattern.exec(text)?.[1];
    if (found) {
      reader.releaseLock();
      return found;
    }
  }
}

export async function freePort(): Promise<number> {
  const probe = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
  const { port } = probe;
  await probe.stop(true);
  if (port === undefined) throw new Error("no port is free");
  return port;
}
