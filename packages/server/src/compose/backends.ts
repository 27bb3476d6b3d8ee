import { existsSync, statSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Bus } from "../changes/bus.ts";
import { createMemoryBus } from "../changes/bus-memory.ts";
import { alone, type Cluster, createCluster } from "../changes/cluster.ts";
import { type Config, ConfigError, type Database } from "../config/config.ts";
import type { FileStorage } from "../config/file-storage.ts";
import { fileProblem } from "../config/setting.ts";
import { storedState } from "../domain/updates.ts";
import type { Blobs } from "../files/blobs.ts";
import type { Logger } from "../observe/log.ts";
import { dataFolder, requireDatabase } from "../store/data-folder.ts";
import type { SharedStore, Store } from "../store/store.ts";

// Backends are imported only when configured: loading an unused one would delay startup.

/** The store and the connection to other nodes. A single node has in-process stand-ins for the latter. */
interface Backends {
  store: Store;
  bus: Bus;
  cluster: Cluster;
}

export async function openBackends(config: Config, node: string, log: Logger): Promise<Backends> {
  const { database, nats } = config;
  const migrated = (from: number, to: number) => log.info({ from, to }, "database migrated");
  if (!database || !nats) {
    const store = await openStore(config, { node, migrated });
    return { store, bus: createMemoryBus(), cluster: alone };
  }
  const { createNatsBus } = await import("../changes/bus-nats.ts");
  const store = await openShared(database, { node, migrated });
  const prefix = `parley.${store.installation}`;
  const bus = createNatsBus({ ...nats, ...storedState(store), node, prefix, log });
  return { store, bus, cluster: createCluster(bus.channel, { log }) };
}

interface StoreOptions {
  /** The id that the change log has for this process. Default: a random one. */
  readonly node?: string;
  /** Called after the schema of a database that was in use was migrated. */
  migrated?(from: number, to: number): void;
}

/** `mustExist`: a folder without a database is refused. */
export async function openStore(
  config: Config,
  { mustExist = false, ...options }: StoreOptions & { mustExist?: boolean } = {},
): Promise<Store> {
  if (config.database) return openShared(config.database, options);
  if (mustExist) requireDatabase(config);
  const { openSqliteStore } = await import("../store/sqlite/index.ts");
  const path = join(dataFolder(config), "parley.db");
  const lost = lostDatabase(path);
  if (lost) throw new ConfigError(`PARLEY_DATA: ${lost}: ${REMEDY_OF_LOSS}.`);
  try {
    return openSqliteStore(path, options);
  } catch (error) {
    const problem = fileProblem(error);
    throw new ConfigError(`PARLEY_DATA has a database that cannot be used, ${path}: ${problem}.`);
  }
}

/** How a database was lost that was at this path, if one was. A new one would hide that. */
export function lostDatabase(path: string): string | null {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.size === 0) return `the database ${path} is empty`;
  return found || !existsSync(`${path}-mark`) ? null : `the database ${path} is gone`;
}

export const REMEDY_OF_LOSS =
  "restore a backup, or delete the files parley.db* there to begin without data";

async function openShared(database: Database, options: StoreOptions): Promise<SharedStore> {
  const { openPostgresStore } = await import("../store/postgres/index.ts");
  try {
    return await openPostgresStore({ ...database, ...options });
  } catch (error) {
    const problem = postgresProblem(database, error);
    throw new ConfigError(`DATABASE_URL names a database that cannot be used: ${problem}.`);
  }
}

/** PostgreSQL names the user and the database in its messages, never the password. */
function postgresProblem({ url }: Database, error: unknown): string {
  const { code = "", message = String(error) } = error as { code?: string; message?: string };
  const { host } = new URL(url);
  if (/^ERR_POSTGRES_CONNECTION/.test(code)) {
    return `nothing answers at ${host}: start PostgreSQL there, correct the address, or allow the connection`;
  }
  const sentence = message.replace(/\.$/, "");
  // SQLSTATEs of a wrong user, password or name of the database.
  const isRefused = /^(28|3D)/.test((error as { errno?: string }).errno ?? "");
  return isRefused ? `${sentence}: correct the user, the password or the name` : sentence;
}

const OWNER_ONLY = 0o700;

export async function openBlobs(storage: FileStorage, dataFolder: string): Promise<Blobs> {
  if (storage.kind === "disk") return openFolder(storage.folder);
  const incoming = join(dataFolder, "files", "incoming");
  await mkdir(incoming, { recursive: true, mode: OWNER_ONLY });
  return openBucket(storage, incoming);
}

/** Opens the storage of files for reading, and creates nothing. Null if there is none. */
export async function existingBlobs(
  storage: FileStorage | null,
): Promise<Pick<Blobs, "open" | "list"> | null> {
  if (storage?.kind === "s3") return openBucket(storage, "");
  return storage && existsSync(join(storage.folder, "incoming"))
    ? openFolder(storage.folder)
    : null;
}

async function openFolder(folder: string): Promise<Blobs> {
  const { openDiskBlobs } = await import("../files/disk.ts");
  try {
    return await openDiskBlobs(folder);
  } catch (error) {
    const must = `PARLEY_FILES must be a folder that can be written, not "${folder}"`;
    throw new ConfigError(`${must}: ${fileProblem(error)}.`);
  }
}

async function openBucket({ options }: Extract<FileStorage, { kind: "s3" }>, incoming: string) {
  const { openS3Blobs } = await import("../files/s3.ts");
  return openS3Blobs(options, incoming);
}
