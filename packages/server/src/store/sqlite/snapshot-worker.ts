/// <reference lib="webworker" />
import { openForReading } from "./connection.ts";
import type { SnapshotReply } from "./snapshot.ts";

declare const self: DedicatedWorkerGlobalScope;

function copy(from: string, to: string): SnapshotReply {
  try {
    using db = openForReading(from);
    db.query("VACUUM INTO ?").run(to);
    return { error: null };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

const [from = "", to = ""] = process.argv.slice(2);
self.postMessage(copy(from, to));
