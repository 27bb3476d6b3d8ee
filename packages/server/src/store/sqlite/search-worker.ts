/// <reference lib="webworker" />
import { threadCpuMs } from "../../observe/cpu-time.ts";
import { serve } from "./background.ts";
import { openSearcher } from "./search.ts";

declare const self: DedicatedWorkerGlobalScope;

const path = process.argv[2];
if (path === undefined) throw new Error("the searching thread needs the path of the database");
const searcher = openSearcher(path);

serve(self, (task) => {
  if (task.kind === "search") {
    const before = threadCpuMs();
    return { hits: searcher.find(task.query), cpuMs: threadCpuMs() - before };
  }
  if (task.kind === "close") return searcher.close();
  throw new Error(`the searching thread does not ${task.kind}`);
});
