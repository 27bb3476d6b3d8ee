import { closeSync, fsyncSync, openSync } from "node:fs";
import { ConfigError } from "../../config.ts";

const POSTGRES_TOOLS = {
  backup: `Back it up with its own tools, while the nodes run:
  pg_dump --format=custom --file=parley.dump "$DATABASE_URL"
Keep PARLEY_MASTER_KEY in another place.`,
  restore: `Stop all nodes and restore it with its own tools:
  pg_restore --clean --if-exists --dbname="$DATABASE_URL" parley.dump
Then start the nodes with the same PARLEY_MASTER_KEY.`,
};

/** Why a command for SQLite does not run, and what to run instead. */
export const refusePostgres = (task: keyof typeof POSTGRES_TOOLS) =>
  new ConfigError(`DATABASE_URL is set: the data is in PostgreSQL. ${POSTGRES_TOOLS[task]}`);

export const percent = (done: number, total: number) =>
  `${Math.min(100, Math.floor((100 * done) / Math.max(total, 1)))} %`;

export const megabytes = (bytes: number) =>
  `${(bytes / 1e6).toLocaleString("en-GB", { maximumFractionDigits: 1 })} MB`;

/** Makes a new or renamed file survive a power cut: its entry is in the folder. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
}
