/// <reference lib="webworker" />
import { Database } from "bun:sqlite";
import { fdatasyncSync } from "node:fs";
import { setPriority } from "node:os";
import { serve } from "./background.ts";
import { BUSY_TIMEOUT_MS, keepLog, truncateLog } from "./connection.ts";
import { openIndexer } from "./search.ts";

declare const self: DedicatedWorkerGlobalScope;

lowerPriority();

const [path, file] = process.argv.slice(2);
if (path === undefined) throw new Error("the indexing thread needs the path of the database");
const db = new Database(path, { readwrite: true, strict: true });
db.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
keepLog(db, true);
const logState = db.query<LogState, []>("PRAGMA wal_checkpoint(NOOP)");
const moveLog = db.query<LogState, []>("PRAGMA wal_checkpoint(PASSIVE)");
const indexer = openIndexer(path, db);

/** The pages that the log has, and how many of them are in the database file. */
interface LogState {
  log: number;
  checkpointed: number;
}

function checkpoint(fromPages: number) {
  const before = logState.get() as LogState;
  const isDue = before.log - before.checkpointed >= fromPages;
  const { log, checkpointed } = isDue ? (moveLog.get() as LogState) : before;
  return { pages: log, left: log - checkpointed };
}

/**
 * Gives the thread that serves requests precedence where both share a core. False where the priority
 * cannot be set: indexing then competes with requests.
 */
function lowerPriority(): boolean {
  // On other systems a priority applies to the whole process.
  if (process.platform !== "linux") return false;
  try {
    setPriority(10);
    return true;
  } catch {
    // Not permitted, for example in some containers.
    return false;
  }
}

serve(self, (task) => {
  if (task.kind === "index") return indexer.catchUp(task.most);
  if (task.kind === "checkpoint") return checkpoint(task.fromPages);
  if (task.kind === "sync") return fdatasyncSync(Number(file));
  if (task.kind === "truncate") return truncateLog(db);
  if (task.kind === "truncate_index") return indexer.truncateLog();
  if (task.kind === "search") throw new Error("the indexing thread does not search");
  indexer.close();
  db.close();
});
