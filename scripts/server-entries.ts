import { join } from "node:path";

const SERVER = join(import.meta.dir, "../packages/server/src");

/** The program, and the files from which it starts worker threads. */
export const SERVER_ENTRIES = [
  "main.ts",
  "store/sqlite/worker.ts",
  "store/sqlite/log-sync-worker.ts",
  "store/sqlite/search-worker.ts",
  "store/sqlite/snapshot-worker.ts",
  "files/media-worker.ts",
  "agents/context-files/pdf-worker.ts",
].map((file) => join(SERVER, file));
