import type { SearchHit, SearchQuery } from "../search.ts";
import { pauseGate } from "./pause-gate.ts";
import type { IndexProgress } from "./search.ts";

/** Work that would block the event loop, done in a thread. */
export type Task =
  /** Indexes new and changed messages for search, at most `most` of each. */
  | { kind: "index"; most: number }
  /**
   * Moves the write-ahead log into the database file if at least so many of its pages are not there
   * yet. Its result is how many pages the log has, and how many of them are still only there.
   */
  | { kind: "checkpoint"; fromPages: number }
  /** Syncs the database file, while writes go on. */
  | { kind: "sync" }
  /** Empties the write-ahead log. Its result is whether it did: a reader may need what it has. */
  | { kind: "truncate" }
  /** The same for the write-ahead log of the search index. */
  | { kind: "truncate_index" }
  | { kind: "search"; query: SearchQuery }
  | { kind: "close" };

interface Results {
  index: IndexProgress;
  checkpoint: { pages: number; left: number };
  sync: undefined;
  truncate: boolean;
  truncate_index: boolean;
  search: { hits: SearchHit[]; cpuMs: number };
  close: undefined;
}

export interface Background<Kind extends Task["kind"]> {
  ask<Asked extends Kind>(task: Extract<Task, { kind: Asked }>): Promise<Results[Asked]>;
  close(): Promise<void>;
}

interface WorkerRequest {
  id: number;
  task: Task;
}

type WorkerReply =
  | { id: number; result: unknown }
  | { id: number; error: string; code: string | undefined };

/** Why a task failed. `code` is SQLite's or the system's, such as SQLITE_IOERR_FSYNC or EIO. */
export class TaskError extends Error {
  readonly code: string | undefined;

  constructor(message: string, code: string | undefined) {
    super(message);
    this.code = code;
  }
}

export interface Indexer
  extends Background<"index" | "checkpoint" | "sync" | "truncate" | "truncate_index"> {
  /** Begins no indexing while work runs. Its first task may wait for indexing that has begun. */
  holdIndexing<Result>(work: () => Promise<Result>): Promise<Result>;
}

/**
 * The thread that writes the search index and runs the checkpoints. It starts with its first task:
 * starting it earlier would delay the start of the service, and commands rarely have one. `file` is a
 * descriptor of the database file: threads share the descriptors of their process.
 */
export function indexerThread(path: string, file: number): Indexer {
  let thread: Pick<Indexer, "ask" | "close"> | undefined;
  const gate = pauseGate();
  return {
    ask: async (task) => {
      const { kind } = task as Task;
      while (kind === "index" && gate.isPaused()) await gate.resumed();
      thread ??= start(new URL("./worker.ts", import.meta.url), path, `${file}`);
      return thread.ask(task);
    },
    holdIndexing: gate.pause,
    close: async () => thread?.close(),
  };
}

/** Starts a thread that searches. It does not wait for the indexer. */
export const startSearcher = (path: string): Background<"search"> =>
  start(new URL("./search-worker.ts", import.meta.url), path);

function start<Kind extends Task["kind"]>(script: URL, ...argv: string[]): Background<Kind> {
  const worker = new Worker(script.href, { argv });
  /** Tasks without a result, by id. */
  const open = new Map<number, PromiseWithResolvers<unknown>>();
  let lastId = 0;
  let broken: Error | null = null;

  worker.addEventListener("message", ({ data }: MessageEvent<WorkerReply>) => {
    const asked = open.get(data.id);
    open.delete(data.id);
    if ("error" in data) asked?.reject(new TaskError(data.error, data.code));
    else asked?.resolve(data.result);
  });
  worker.addEventListener("error", (event) => {
    broken = new Error(`the store's background thread failed: ${event.message}`);
    for (const asked of open.values()) asked.reject(broken);
    open.clear();
  });

  const ask = (task: Task) => {
    if (broken) return Promise.reject(broken);
    const asked = Promise.withResolvers<unknown>();
    open.set(++lastId, asked);
    worker.postMessage({ id: lastId, task } satisfies WorkerRequest);
    return asked.promise as Promise<never>;
  };
  return {
    ask,
    close: async () => {
      await ask({ kind: "close" }).catch(ignoreBrokenThread);
      worker.terminate();
    },
  };
}

/** A thread that has failed is terminated without closing its files. */
const ignoreBrokenThread = () => undefined;

/** Runs inside the thread: performs each task and posts its result or its error. */
export function serve(self: DedicatedWorkerGlobalScope, perform: (task: Task) => unknown): void {
  self.addEventListener("message", ({ data: { id, task } }: MessageEvent<WorkerRequest>) => {
    let reply: WorkerReply;
    try {
      reply = { id, result: perform(task) };
    } catch (error) {
      reply = { id, error: String(error), code: (error as { code?: string }).code };
    }
    self.postMessage(reply);
  });
}
