/// <reference lib="webworker" />
import { serve } from "./background.ts";
import { openSearcher } from "./search.ts";

declare const self: DedicatedWorkerGlobalScope;

const path = process.argv[2];
if (path === undefined) throw new Error("the searching thread needs the path of the database");
const searcher = openSearcher(path);

serve(self, (task) => {
  if (task.kind === "search") return searcher.find(task.query);
  if (task.kind === "close") return searcher.close();
  throw new Error(`the searching thread does not ${task.kind}`);
});
