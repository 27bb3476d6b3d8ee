import { startBalancer } from "./balancer.ts";
import { startNats, type TestNats } from "./nats.ts";
import { freePort, startPostgres, type TestPostgres } from "./postgres.ts";
import { FaultyLine } from "./proxy.ts";
import { collect, type Environment, spawnMain } from "./server.ts";

const MASTER_KEY = Buffer.alloc(32, 7).toString("base64");

/** One of several nodes. It keeps its address for as long as the cluster lasts. */
export interface TestNode {
  readonly name: string;
  readonly url: string;
  /** Whether a load balancer would send anybody here. */
  readonly isUp: boolean;
  /** Everything it has printed so far, in all its lives. */
  output(): string;
  /** Ended, though nobody has ended it. */
  hasCrashed(): boolean;
  /** Ends it as a power cut would. */
  kill(): Promise<void>;
  /** Ends it as an operator would, and returns its exit code. */
  stop(): Promise<number>;
  /** Starts it again at the same address, after `stop` or `kill`. */
  restart(): Promise<void>;
  /** Has it stand still, as a virtual machine that is moved does. */
  pause(): void;
  resume(): void;
  /** Cuts the link to NATS; with `silently` nobody is told, and what is sent vanishes. */
  cutOff(how?: "silently"): void;
  mend(): void;
}

/** Several nodes on a PostgreSQL and a NATS of their own, each of which can fail. */
export interface Cluster extends AsyncDisposable {
  /** Leads to the nodes that are up, as a load balancer does. */
  readonly url: string;
  readonly nodes: readonly TestNode[];
  readonly postgres: TestPostgres;
  readonly nats: TestNats;
  /** Resolves when every node that is up says that it is ready. */
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
    const line = made.use(await FaultyLine.to(nats.url));
    const port = await freePort();
    const own = { ...shared, NATS_URL: line.url.replace(/^http/, "nats"), PORT: `${port}` };
    return made.use(await startNode(name, port, own, line));
  };
  // The first makes the tables.
  const nodes = [await start("node 1")];
  const others = Array.from({ length: count - 1 }, (_, place) => start(`node ${place + 2}`));
  // Each of them is to be ended, should another fail to start.
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
    () => false,
  );

type OwnNode = TestNode & AsyncDisposable;

async function startNode(
  name: string,
  port: number,
  env: Environment,
  line: FaultyLine,
): Promise<OwnNode> {
  const earlier: string[] = [];
  let state: "up" | "paused" | "ended" = "up";
  let life = await begin();

  async function begin() {
    const child = spawnMain({ PARLEY_LOG: "warn", PARLEY_STRICT_ERRORS: "on", ...env });
    const read = collect(child);
    if ((await read.until(/listens on (\S+)/)) !== null) return { child, output: read.output };
    throw new Error(`${name} did not start: ${read.output()}`);
  }

  async function end(signal: NodeJS.Signals): Promise<number> {
    state = "ended";
    life.child.kill(signal);
    return life.child.exited;
  }

  return {
    name,
    url: `http://127.0.0.1:${port}`,
    get isUp() {
      return state === "up" && life.child.exitCode === null;
    },
    output: () => [...earlier, life.output()].join(""),
    hasCrashed: () => state !== "ended" && life.child.exitCode !== null,
    kill: async () => void (await end("SIGKILL")),
    stop: () => end("SIGTERM"),
    async restart() {
      earlier.push(life.output());
      life = await begin();
      state = "up";
    },
    pause() {
      state = "paused";
      life.child.kill("SIGSTOP");
    },
    resume() {
      life.child.kill("SIGCONT");
      state = "up";
    },
    cutOff(how) {
      line.refuse(true);
      if (how === "silently") line.stall("toServer", "toClient");
      else line.cut();
    },
    mend() {
      // What vanished on a line cannot be made up for: it is made anew.
      line.cut();
      line.calm();
    },
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}
