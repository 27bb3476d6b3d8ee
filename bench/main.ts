/**
 * Measures what Parley costs, compared with a minimal server on the same runtime in the same run.
 * The server runs on one core and the generator on another, without rate limits; every message is
 * synced to disk. Read the ratios first: they vary less on a shared machine.
 *
 * `bun bench/main.ts [scenario …] [--save]`: `--save` also writes the results and the chart to docs/bench.
 */
import { mkdirSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { users, webhooks } from "./backend.ts";
import { print, WINDOWS } from "./environment.ts";
import { files } from "./files.ts";
import { group, pairs, single } from "./load.ts";
import { nodes } from "./nodes.ts";
import { paste } from "./paste.ts";
import { chart, type Measurement, type Row, summarize, table } from "./report.ts";
import { idle, size, typing, unused } from "./size.ts";
import { start } from "./start.ts";
import { streams } from "./streams.ts";
import { tools } from "./tools.ts";

const scenarios: Record<string, () => Promise<Measurement[]>> = {
  "pairs-400": () => pairs(200, 2, 40_000, 1.8),
  "pairs-100": () => pairs(100, 1, 20_000, 2.5),
  "group-50": () => group(50, 16, 10_000, 2.5),
  "group-500": () => group(500, 4, 2000, 1.3),
  single,
  "streams-500": () => streams(500, 1.3),
  "streams-1000": () => streams(1000, 1.3),
  "tools-200": () =>
    tools("tool calls", 200, { tools: 8, schemaCharacters: 600, resultCharacters: 2000 }),
  "tools-large": () =>
    tools("large tool calls", 20, {
      tools: 128,
      schemaCharacters: 1800,
      resultCharacters: 65_536,
    }),
  start,
  nodes,
  size,
  idle,
  unused,
  users,
  webhooks,
  files,
  paste,
};

const RESULTS = join(import.meta.dir, "results");
const DOCS = join(import.meta.dir, "../docs/bench");

const named = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const isWanted = (name: string) => named.length === 0 || named.some((one) => name.startsWith(one));
const rows: Row[] = [];
for (const [name, run] of Object.entries(scenarios)) {
  if (!isWanted(name)) continue;
  process.stderr.write(`measuring ${name}\n`);
  rows.push(...(await run()).map(summarize));
}
print(table(rows));
if (isWanted("typing")) for (const line of ["", ...(await typing())]) print(line);

const results = {
  measured_at: new Date().toISOString(),
  machine: { cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, arch: process.arch },
  bun: Bun.version,
  windows: WINDOWS,
  rows,
};
const folders = process.argv.includes("--save") ? [RESULTS, DOCS] : [RESULTS];
for (const folder of folders) {
  mkdirSync(folder, { recursive: true });
  await Bun.write(join(folder, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
  await Bun.write(
    join(folder, "chart.svg"),
    chart(rows.filter(({ metric }) => metric.startsWith("CPU"))),
  );
}
