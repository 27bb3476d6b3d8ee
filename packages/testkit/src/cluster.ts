import { startBalancer } from "./balancer.ts";
import { startNats, type TestNats } from "./nats.ts";
import { freePort, startPostgres, type TestPostgres } from "./postgres.ts";
import { FaultyProxy } from "./proxy.ts";
import { collect, type Environment, spawnMain } from "./server.ts";

const MASTER_KEY = Buffer.alloc(32, 7).toString("base64");

/** A node of a cluster. It keeps its address across restarts. */
export interface TestNode {
  readonly name: string;
  readonly url: string;
  /** Whether the load balancer uses this node. */
  readonly isUp: boolean;
  /** Everything it has printed, across restarts. */
  output(): string;
  /** Whether it exited without `kill` or `stop`. */
  hasCrashed(): boolean;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number>;
  /** Starts it again at the same address, after `stop` or `kill`. */
  restart(): Promise<void>;
  /** Sends SIGSTOP, which acts like the migration of a virtual machine. */
  pause(): void;
  resume(): void;
  /** Cuts the connection to NATS; with `silently` it stays open and drops all bytes. */
  disconnectNats(how?: "silently"): void;
  reconnectNats(): void;
}

/** Several nodes with their own PostgreSQL and NATS. Each part can be made to fail. */
export interface Cluster extends AsyncDisposable {
  /** The load balancer in front of the nodes that are up. */
  readonly url: string;
  readonly nodes: readonly TestNode[];
  readonly postgres: TestPostgres;
  readonly nats: TestNats;
  /** Resolves when `/ready` succeeds on every node that is up. */
  ready(): Promise<void>;
}

export interface ClusterOptions {
  nodes: number;
  env?: Environment;
}

export async function startCluster({ nodes: count, env = {} }: ClusterOptions): Promise<Cluster> {
  await using made = new AsyncDisposableStack();
  const postgres = made.use(await startPostgres());
  const nats = made.use(await startNats());
  const shared = { DATABASE_URL: postgres.url, PARLEY_MASTER_KEY: MASTER_KEY, ...env };
  const start = async (name: string) => {
    const proxy = made.use(await FaultyProxy.to(nats.url));
    const port = await freePort();
    const own = { ...shared, NATS_URL: proxy.url.replace(/^http/, "nats"), PORT: `${port}` };
    return made.use(await startNode(name, port, own, proxy));
  };
  // The first node creates the tables.
  const nodes = [await start("node 1")];
  const others = Array.from({ length: count - 1 }, (_, index) => start(`node ${index + 2}`));
  // Waits for all, so that each one is disposed of if another fails to start.
  await Promise.allSettled(others);
  nodes.push(...(await Promise.all(others)));
  const up = () => nodes.filter(({ isUp }) => isUp).map(({ url }) => url);
  const balancer = made.use(await startBalancer(up));
  const all = made.move();
  return {
    url: balancer.url,
    nodes,
    postgres,
    nats,
    async ready() {
      while (!(await Promise.all(up().map(isReady))).every(Boolean)) await Bun.sleep(50);
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const isReady = (url: string): Promise<boolean> =>
  fetch(`${url}/ready`, { signal: AbortSignal.timeout(2000) }).then(
    ({ ok }) => ok,
    // It does not listen yet, or stalls.
    () => false,
  );

type OwnNode = TestNode & AsyncDisposable;

async function startNode(
  name: string,
  port: number,
  env: Environment,
  proxy: FaultyProxy,
): Promise<OwnNode> {
  const earlier: string[] = [];
  let state: "up" | "paused" | "ended" = "up";
  let run = await spawn();

  async function spawn() {
    const child = spawnMain({ PARLEY_LOG: "warn", PARLEY_STRICT_ERRORS: "on", ...env });
    const read = collect(child);
    if ((await read.until(/listens on (\S+)/)) !== null) return { child, output: read.output };
    throw new Error(`${name} did not start: ${read.output()}`);
  }

  async function end(signal: NodeJS.Signals): Promise<number> {
    state = "ended";
    run.child.kill(signal);
    return run.child.exited;
  }

  return {
    name,
    url: `http://127.0.0.1:${port}`,
    get isUp() {
      return state === "up" && run.child.exitCode === null;
    },
    output: () => [...earlier, run.output()].join(""),
    hasCrashed: () => state !== "ended" && run.child.exitCode !== null,
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
    async restart() {
      earlier.push(run.output());
      run = await spawn();
      state = "up";
    },
    pause() {
      state = "paused";
      run.child.kill("SIGSTOP");
    },
    resume() {
      run.child.kill("SIGCONT");
      state = "up";
    },
    disconnectNats(how) {
      proxy.refuse(true);
      if (how === "silently") proxy.stall("toServer", "toClient");
      else proxy.cut();
    },
    reconnectNats() {
      // A connection that has lost bytes cannot be used again.
      proxy.cut();
      proxy.reset();
    },
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}
