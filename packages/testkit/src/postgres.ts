import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { SQL } from "bun";
import { installedPath } from "./packages.ts";

/** A real PostgreSQL in a folder of its own. */
export interface TestPostgres extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Folder of its programs, such as pg_dump. */
  readonly bin: string;
  /** Folder of its data. */
  readonly data: string;
  /** A new, empty database. */
  database(): Promise<{ url: string; drop(): Promise<void> }>;
  /** Stops it at once, without a checkpoint. */
  kill(): Promise<void>;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  readonly pid: number;
}

const VERSIONS = "/usr/lib/postgresql";
/** PostgreSQL refuses to run as root; Debian's package creates a user for it. */
const asPostgres =
  process.getuid?.() === 0
    ? ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    : [];

/** Runs without fsync by default: tests do not cut the power. */
export async function startPostgres({
  sync = false,
  certificate = null as { cert: string; key: string } | null,
} = {}): Promise<TestPostgres> {
  const folder = mkdtempSync(join(tmpdir(), "parley-postgres-"));
  if (asPostgres.length > 0) chmodSync(folder, 0o777);
  const data = join(folder, "data");
  const bin = postgresPrograms();
  run([
    join(bin, "initdb"),
    "-D",
    data,
    "-A",
    "trust",
    "-U",
    "parley",
    "--no-sync",
    "-E",
    "UTF8",
    "--locale=C.UTF-8",
  ]);
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
    await waitUntilReady(url, child);
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
    async database() {
      const name = Bun.randomUUIDv7();
      return { url: await databaseFor(url, name), drop: () => dropDatabase(url, name) };
    },
    async kill() {
      // An immediate shutdown: it writes nothing more, and unlike SIGKILL ends the child processes.
      server.kill("SIGQUIT");
      await server.exited;
    },
    async start() {
      server = await startServer();
    },
    async [Symbol.asyncDispose]() {
      server.kill("SIGQUIT");
      await server.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
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

async function waitUntilReady(url: string, child: Bun.Subprocess): Promise<void> {
  while (child.exitCode === null) {
    try {
      await execute(url, "SELECT 1");
      return;
    } catch {
      // It does not accept connections yet.
      await Bun.sleep(20);
    }
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
