/// <reference lib="webworker" />
import { Database } from "bun:sqlite";
import type { SnapshotReply } from "./snapshot.ts";

declare const self: DedicatedWorkerGlobalScope;

function copy(from: string, to: string): SnapshotReply {
  try {
    using db = new Database(from, { readonly: true, strict: true });
    db.run("PRAGMA busy_timeout = 5000");
    db.query("VACUUM INTO ?").run(to);
    return { error: null };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

const [from = "", to = ""] = process.argv.slice(2);
self.postMessage(copy(from, to));
