/// <reference lib="webworker" />
import { fdatasyncSync } from "node:fs";
import type { SyncReply } from "./log-sync.ts";

declare const self: DedicatedWorkerGlobalScope;

/** Threads share the descriptors of their process. */
const log = Number(process.argv[2]);

function sync(): SyncReply {
  try {
    fdatasyncSync(log);
    return null;
  } catch (error) {
    return String(error);
  }
}

self.addEventListener("message", () => self.postMessage(sync()));
