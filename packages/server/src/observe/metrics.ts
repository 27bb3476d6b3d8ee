import { VERSION } from "./version.ts";

export type Metrics = ReturnType<typeof createMetrics>;

type Reading = number | readonly { labels: Readonly<Record<string, string>>; value: number }[];

/** Upper bounds of the histogram's buckets; one more bucket has no bound. */
const BOUNDS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 1000, 5000];

/** The calls of one operation. */
interface CallFigures {
  codes: Map<string, number>;
  buckets: number[];
  milliseconds: number;
}

/** Metrics for Prometheus. Counting a call is cheap: it is on the path of every call. */
export function createMetrics() {
  const operations = new Map<string, CallFigures>();
  const watched: { name: string; type: string; help: string; read: () => Reading }[] = [];

  /** Registers a metric whose value, or values with labels, are read at each scrape. */
  const watch = (name: string, type: "gauge" | "counter", help: string, read: () => Reading) =>
    void watched.push({ name, type, help, read });

  watchProcess(watch);
  return {
    /** Counts a call with its outcome, `ok` or an error code, and its duration. */
    called(operation: string, code: string, milliseconds: number): void {
      let figures = operations.get(operation);
      if (!figures) {
        figures = { codes: new Map(), buckets: BOUNDS_MS.map(() => 0).concat(0), milliseconds: 0 };
        operations.set(operation, figures);
      }
      figures.codes.set(code, (figures.codes.get(code) ?? 0) + 1);
      const bound = BOUNDS_MS.findIndex((upper) => milliseconds <= upper);
      const bucket = bound === -1 ? BOUNDS_MS.length : bound;
      figures.buckets[bucket] = (figures.buckets[bucket] ?? 0) + 1;
      figures.milliseconds += milliseconds;
    },
    watch,
    /** Registers a counter with one label, and returns its function. `known` values are shown at once. */
    counter(name: string, help: string, label: string, known: readonly string[] = []) {
      const counts = new Map(known.map((value) => [value, 0]));
      watch(name, "counter", help, () =>
        [...counts].map(([text, value]) => ({ labels: { [label]: text }, value })),
      );
      return (value: string, by = 1) => void counts.set(value, (counts.get(value) ?? 0) + by);
    },
    /** All metrics in Prometheus' text format. */
    text(): string {
      const lines = watched.flatMap(({ name, type, help, read }) => [
        ...heading(name, type, help),
        ...samples(name, read()),
      ]);
      lines.push(...heading("parley_calls_total", "counter", "Calls by operation and outcome."));
      for (const [operation, { codes }] of operations) {
        for (const [code, count] of codes) {
          lines.push(`parley_calls_total{operation="${operation}",code="${code}"} ${count}`);
        }
      }
      lines.push(...heading("parley_call_seconds", "histogram", "How long calls took."));
      for (const [operation, figures] of operations) lines.push(...histogram(operation, figures));
      return `${lines.join("\n")}\n`;
    },
  };
}

function watchProcess(watch: Metrics["watch"]): void {
  watch("parley_build_info", "gauge", "Always 1, with the version of the server.", () => [
    { labels: { version: VERSION }, value: 1 },
  ]);
  watch("process_resident_memory_bytes", "gauge", "Resident memory.", () =>
    process.memoryUsage.rss(),
  );
  watch(
    "process_heap_bytes",
    "gauge",
    "Memory of JavaScript objects.",
    () => process.memoryUsage().heapUsed,
  );
  watch("process_cpu_seconds_total", "counter", "CPU time used.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
}

const heading = (name: string, type: string, help: string) => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} ${type}`,
];

function samples(name: string, reading: Reading): string[] {
  if (typeof reading === "number") return [`${name} ${reading}`];
  return reading.map(({ labels, value }) => {
    const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text}"`);
    return `${name}{${pairs.join(",")}} ${value}`;
  });
}

function histogram(operation: string, { buckets, milliseconds }: CallFigures): string[] {
  let sum = 0;
  const lines = buckets.map((count, place) => {
    sum += count;
    const bound = BOUNDS_MS[place];
    const le = bound === undefined ? "+Inf" : bound / 1000;
    return `parley_call_seconds_bucket{operation="${operation}",le="${le}"} ${sum}`;
  });
  lines.push(`parley_call_seconds_sum{operation="${operation}"} ${milliseconds / 1000}`);
  lines.push(`parley_call_seconds_count{operation="${operation}"} ${sum}`);
  return lines;
}
