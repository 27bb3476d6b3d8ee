import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { storedState } from "../changes/stored-state.ts";
import type { FileStorage } from "../config/file-storage.ts";
import { type Config, ConfigError, type Database } from "../config.ts";
import type { Blobs } from "../files/blobs.ts";
import type { Logger } from "../observe/log.ts";
import type { Bus } from "../realtime/bus.ts";
import { memoryBus } from "../realtime/bus-memory.ts";
import { alone, type Cluster, cluster as newCluster } from "../realtime/cluster.ts";
import { dataFolder } from "../store/data-folder.ts";
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
  if (!database || !nats) {
    const store = await strictly(await openStore(config, node), config);
    return { store, bus: memoryBus(), cluster: alone };
  }
  const { NatsBus } = await import("../realtime/bus-nats.ts");
  const store = await strictly(await openShared(database, node), config);
  const prefix = `parley.${store.installation}`;
  const bus = new NatsBus({ ...nats, ...storedState(store), node, prefix, log });
  return { store, bus, cluster: newCluster(bus.channel, { log }) };
}

/** Where errors are strict, a unit that changes a conversation it does not own fails. */
async function strictly<Opened extends Store>(
  store: Opened,
  { strictErrors }: Config,
): Promise<Opened> {
  if (!strictErrors) return store;
  const { checkingOwnership } = await import("../store/checked-store.ts");
  return checkingOwnership(store);
}

/** `node` is the id that the change log has for this process. */
export async function openStore(config: Config, node = Bun.randomUUIDv7()): Promise<Store> {
  if (config.database) return openShared(config.database, node);
  const { openSqliteStore } = await import("../store/sqlite/index.ts");
  return openSqliteStore(join(dataFolder(config), "parley.db"), { node });
}

async function openShared(database: Database, node: string): Promise<SharedStore> {
  const { openPostgresStore } = await import("../store/postgres/index.ts");
  try {
    return await openPostgresStore({ ...database, node });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigError(`DATABASE_URL names a database that cannot be used: ${why}.`);
  }
}

const OWNER_ONLY = 0o700;

/** Opens the storage of files. */
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
  const { diskBlobs } = await import("../files/disk.ts");
  return diskBlobs(folder);
}

async function openBucket(
  { options }: Extract<FileStorage, { kind: "s3" }>,
  incoming: string,
): Promise<Blobs> {
  const { s3Blobs } = await import("../files/s3.ts");
  return s3Blobs(options, incoming);
}
