/// <reference lib="webworker" />
import { Database } from "bun:sqlite";
import { setPriority } from "node:os";
import type { Task, WorkerReply, WorkerRequest } from "./background.ts";
import { openSearch } from "./search.ts";

declare const self: DedicatedWorkerGlobalScope;

stepBack();

const path = process.argv[2];
if (path === undefined) throw new Error("the background thread needs the path of the database");
const db = new Database(path, { readwrite: true, strict: true });
db.run("PRAGMA busy_timeout = 5000");
const checkpoint = db.query("PRAGMA wal_checkpoint(PASSIVE)");
const search = openSearch(path, db);

/** Where they share a core, the thread that serves people goes first. */
function stepBack(): void {
  // Elsewhere a priority is the whole process's.
  if (process.platform !== "linux") return;
  try {
    setPriority(10);
  } catch {
    // Somebody forbids it, and nothing depends on it.
  }
}

function perform(task: Task): unknown {
  switch (task.kind) {
    case "search":
      return search.find(task.query);
    case "index":
      return search.catchUp(task.most);
    case "checkpoint":
      return void checkpoint.get();
    case "close":
      search.close();
      return db.close();
  }
}

self.addEventListener("message", ({ data: { id, task } }: MessageEvent<WorkerRequest>) => {
  let reply: WorkerReply;
  try {
    reply = { id, result: perform(task) };
  } catch (error) {
    reply = { id, error: String(error) };
  }
  self.postMessage(reply);
});
