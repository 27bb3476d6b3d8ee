import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SQL } from "bun";
import { CACHE } from "./cache.ts";
import { installedPath } from "./packages.ts";

/** A real PostgreSQL that other tests may use at the same time. */
export interface SharedPostgres extends AsyncDisposable {
  readonly url: string;
  /** Folder of its programs, such as pg_dump. */
  readonly bin: string;
  /** A new, empty database. */
  database(): Promise<{ url: string; drop(): Promise<void> }>;
}

/** A real PostgreSQL in a folder of its own. */
export interface TestPostgres extends SharedPostgres {
  readonly port: number;
  /** Folder of its data. */
  readonly data: string;
  /** Stops it at once, without a checkpoint. */
  kill(): Promise<void>;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  /** It neither answers nor closes its connections, until `resume`. */
  pause(): void;
  resume(): void;
  readonly pid: number;
}

const VERSIONS = "/usr/lib/postgresql";
/** PostgreSQL refuses to run as root; Debian's package creates a user for it. */
const asPostgres =
  process.getuid?.() === 0
    ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    : [];

/**
 * For tests that need databases, and neither configure nor stop their server: the server of the whole
 * run, whose URL is in PARLEY_TEST_POSTGRES, or else a new one.
 */
export async function sharedPostgres(): Promise<SharedPostgres> {
  const url = process.env.PARLEY_TEST_POSTGRES;
  if (!url) return startPostgres();
  const made: { drop(): Promise<void> }[] = [];
  return {
    url,
    bin: postgresPrograms(),
    async database() {
      const database = await newDatabase(url);
      made.push(database);
      return database;
    },
    // The server goes on for other tests.
    [Symbol.asyncDispose]: async () => {
      await Promise.all(made.map(({ drop }) => drop()));
    },
  };
}

/** Runs without fsync by default: tests do not cut the power. */
export async function startPostgres({
  sync = false,
  certificate = null as { cert: string; key: string } | null,
} = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "parley-postgres-"));
  if (asPostgres.length > 0) chmodSync(folder, 0o777);
  const data = join(folder, "data");
  const bin = postgresPrograms();
  run(["cp", "-a", initialised(bin), data], []);
  if (certificate) {
    // PostgreSQL refuses a key that others can read.
    const [cert, key] = [join(data, "server.crt"), join(data, "server.key")];
    copyFileSync(certificate.cert, cert);
    copyFileSync(certificate.key, key);
    chmodSync(key, 0o600);
    if (asPostgres.length > 0) run(["chown", "postgres", cert, key], []);
    appendFileSync(join(data, "postgresql.conf"), "ssl = on\n");
  }
  const port = await freePort();
  const url = `postgres://parley@127.0.0.1:${port}/postgres`;
  let server = await startServer();

  async function startServer() {
    const child = Bun.spawn(
      [
        ...asPostgres,
        join(bin, "postgres"),
        ...["-D", data, "-p", `${port}`, "-k", folder],
        ...["-c", "listen_addresses=127.0.0.1", "-c", "max_connections=1000"],
        ...["-c", `fsync=${sync ? "on" : "off"}`],
      ],
      { cwd: folder, stdout: "ignore", stderr: "ignore" },
    );
    await waitUntilReady(data, child);
    return child;
  }

  return {
    url,
    port,
    bin,
    data,
    get pid() {
      return server.pid;
    },
    database: () => newDatabase(url),
    async kill() {
      // An immediate shutdown: it writes nothing more, and unlike SIGKILL ends the child processes.
      server.kill("SIGQUIT");
      await server.exited;
    },
    async start() {
      server = await startServer();
    },
    pause() {
      // The server first: it starts no more child processes then.
      server.kill("SIGSTOP");
      signalChildren(server.pid, "SIGSTOP");
    },
    resume() {
      signalChildren(server.pid, "SIGCONT");
      server.kill("SIGCONT");
    },
    async [Symbol.asyncDispose]() {
      server.kill("SIGQUIT");
      await server.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function signalChildren(pid: number, signal: NodeJS.Signals): void {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  for (const child of children.split(" ")) process.kill(Number(child), signal);
}

async function newDatabase(url: string) {
  const name = Bun.randomUUIDv7();
  return { url: await databaseFor(url, name), drop: () => dropDatabase(url, name) };
}

/** The URL of the database for a name, which is created if it does not exist. */
export async function databaseFor(url: string, name: string): Promise<string> {
  const database = nameFor(name);
  await execute(url, `CREATE DATABASE ${database}`).catch((error) => {
    if (error?.errno !== "42P04") throw error;
  });
  return url.replace(/\/postgres$/, `/${database}`);
}

export const dropDatabase = (url: string, name: string) =>
  execute(url, `DROP DATABASE IF EXISTS ${nameFor(name)} WITH (FORCE)`);

const nameFor = (name: string) => `t${Bun.hash(name).toString(36)}`;

const INITDB = [
  ...["-A", "trust", "-U", "parley", "--no-sync"],
  ...["-E", "UTF8", "--locale=C.UTF-8"],
];

/** A data folder that no server has used yet. Copying it takes a tenth of the CPU time of `initdb`. */
function initialised(bin: string): string {
  const { mtimeMs, size } = statSync(join(bin, "postgres"));
  const made = join(CACHE, `postgres-${Bun.hash(`${bin} ${mtimeMs} ${size} ${INITDB}`)}`);
  if (existsSync(made)) return made;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(tmpdir(), "parley-initdb-"));
  if (asPostgres.length > 0) chmodSync(folder, 0o777);
  run([join(bin, "initdb"), "-D", join(folder, "data"), ...INITDB]);
  const copy = mkdtempSync(join(CACHE, "unfinished-"));
  run(["cp", "-a", join(folder, "data"), copy], []);
  try {
    renameSync(join(copy, "data"), made);
  } catch (error) {
    // Another test process was faster.
    if (!existsSync(made)) throw error;
  }
  rmSync(folder, { recursive: true });
  rmSync(copy, { recursive: true });
  return made;
}

/** The folder of PostgreSQL's programs. As root, installs them if they are missing. */
export function postgresPrograms(): string {
  const find = () => {
    const versions = existsSync(VERSIONS) ? readdirSync(VERSIONS) : [];
    const servers = versions
      .toSorted((one, other) => Number(other) - Number(one))
      .map((version) => join(VERSIONS, version, "bin", "postgres"));
    return servers.find((server) => existsSync(server)) ?? Bun.which("postgres");
  };
  return dirname(installedPath(find, "postgresql"));
}

function run(command: string[], as: readonly string[] = asPostgres): void {
  const { exitCode, stderr } = Bun.spawnSync([...as, ...command], { cwd: "/" });
  if (exitCode !== 0) throw new Error(`${command[0]} failed: ${stderr}`);
}

async function execute(url: string, statement: string): Promise<void> {
  await using sql = new SQL({ url, max: 1 });
  await sql.unsafe(statement);
}

/** Reads the state that the server writes into its lock file: a connection attempt costs much more. */
async function waitUntilReady(data: string, child: Bun.Subprocess): Promise<void> {
  const lockFile = join(data, "postmaster.pid");
  while (child.exitCode === null) {
    const lines = existsSync(lockFile) ? readFileSync(lockFile, "utf8").split("\n") : [];
    const [pid, state] = [lines[0], lines[7]?.trim()];
    if (pid === `${child.pid}` && (state === "ready" || state === "standby")) return;
    await Bun.sleep(10);
  }
  throw new Error("PostgreSQL did not start");
}

export function freePort(): Promise<number> {
  // Below the ephemeral ports, so that the port is still free when a service restarts.
  const port = 10_000 + Math.floor(Math.random() * 20_000);
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(freePort()));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(port)));
  });
}
