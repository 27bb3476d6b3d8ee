import type { SearchHit, SearchQuery } from "../store.ts";

/** Work that would hold up the event loop, done by a thread of its own. */
export type Task =
  | { kind: "search"; query: SearchQuery }
  /** Indexes for search what has been written since; at most so many messages. */
  | { kind: "index"; most: number }
  /** Moves what the log holds into the database file. */
  | { kind: "checkpoint" }
  | { kind: "close" };

export type Answer<Kind extends Task["kind"]> = Kind extends "search" ? SearchHit[] : undefined;

export interface Background {
  ask<Kind extends Task["kind"]>(task: Extract<Task, { kind: Kind }>): Promise<Answer<Kind>>;
  close(): Promise<void>;
}

export interface WorkerRequest {
  id: number;
  task: Task;
}

export type WorkerReply = { id: number; result: unknown } | { id: number; error: string };

export function startBackground(path: string): Background {
  const worker = new Worker(new URL("./worker.ts", import.meta.url).href, {
    argv: [path],
  });
  const open = new Map<number, PromiseWithResolvers<unknown>>();
  let last = 0;
  let broken: Error | null = null;

  worker.addEventListener("message", ({ data }: MessageEvent<WorkerReply>) => {
    const asked = open.get(data.id);
    open.delete(data.id);
    if ("error" in data) asked?.reject(new Error(data.error));
    else asked?.resolve(data.result);
  });
  worker.addEventListener("error", (event) => {
    broken = new Error(`the store's background thread failed: ${event.message}`);
    for (const asked of open.values()) asked.reject(broken);
    open.clear();
  });

  const ask: Background["ask"] = (task) => {
    if (broken) return Promise.reject(broken);
    const asked = Promise.withResolvers<unknown>();
    open.set(++last, asked);
    worker.postMessage({ id: last, task } satisfies WorkerRequest);
    return asked.promise as Promise<never>;
  };
  return {
    ask,
    close: async () => {
      await ask({ kind: "close" }).catch(() => undefined);
      worker.terminate();
    },
  };
}
