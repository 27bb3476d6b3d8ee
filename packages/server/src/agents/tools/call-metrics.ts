import type { Metrics } from "../../observe/metrics.ts";

/** How a call of a tool ended: `error` is an error that the tool reported itself. */
export const outcomes = ["ok", "error", "failed", "timeout", "refused", "aborted"] as const;
export type Outcome = (typeof outcomes)[number];

/** Counts calls of tools by outcome, with their duration. */
export function callMetrics(metrics: Metrics) {
  const figures = new Map(outcomes.map((outcome) => [outcome, { count: 0, seconds: 0 }]));
  const read = (field: "count" | "seconds") => () =>
    [...figures].map(([outcome, figure]) => ({ labels: { outcome }, value: figure[field] }));
  metrics.watch("parley_tool_calls_total", "counter", "Calls of tools by outcome.", read("count"));
  metrics.watch(
    "parley_tool_call_seconds_total",
    "counter",
    "Time that calls of tools took, by outcome.",
    read("seconds"),
  );
  return (outcome: Outcome, startedAt: number): number => {
    const seconds = (performance.now() - startedAt) / 1000;
    const figure = figures.get(outcome);
    if (figure) {
      figure.count++;
      figure.seconds += seconds;
    }
    return seconds;
  };
}
