import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createMetrics } from "../src/observe/metrics.ts";

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

interface Family {
  help: string;
  type: string;
  samples: Sample[];
}

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"`;
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)\\})? (\\S+)$`);

/** Reads Prometheus' text format (version 0.0.4) as strictly as its description allows. */
function parse(text: string): Map<string, Family> {
  expect(text).toEndWith("\n");
  const families = new Map<string, Family>();
  let current = { name: "", family: null as Family | null };
  for (const line of text.slice(0, -1).split("\n")) {
    const comment = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line);
    if (comment?.[1] === "HELP") {
      const [, , name = "", help = ""] = comment;
      expect(families.has(name)).toBe(false);
      current = { name, family: { help, type: "", samples: [] } };
      families.set(name, current.family as Family);
    } else if (comment && current.family) {
      expect(comment[2]).toBe(current.name);
      expect(current.family.type).toBe("");
      current.family.type = comment[3] as string;
    } else {
      const sample = readSample(line);
      const owner = current.family?.type === "histogram" ? /_(bucket|sum|count)$/ : /$^/;
      expect(sample.name.replace(owner, "")).toBe(current.name);
      current.family?.samples.push(sample);
    }
  }
  return families;
}

function readSample(line: string): Sample {
  const match = SAMPLE.exec(line);
  if (!match) throw new Error(`not a sample: ${line}`);
  const [, name = "", labels = "", value = ""] = match;
  const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
  expect(Number(value)).not.toBeNaN();
  return {
    name,
    labels: Object.fromEntries(pairs.map(([, key, text]) => [key, text])),
    value: Number(value),
  };
}

const family = (text: string, name: string): Family => {
  const found = parse(text).get(name);
  if (!found) throw new Error(`${name} is missing`);
  return found;
};

describe("the text for Prometheus", () => {
  test("is valid before the first call", () => {
    const families = parse(createMetrics().text());
    for (const { type, help } of families.values()) {
      expect(["counter", "gauge", "histogram"]).toContain(type);
      expect(help).not.toBe("");
    }
  });

  test("is valid and has no duplicate samples for any calls", () => {
    const call = fc.tuple(
      fc.constantFrom("sendMessage", "getMe", "unknown"),
      fc.constantFrom("ok", "not_found", "internal"),
      fc.double({ min: 0, max: 1e7, noNaN: true }),
    );
    fc.assert(
      fc.property(fc.array(call, { maxLength: 50 }), (calls) => {
        const counted = createMetrics();
        for (const each of calls) counted.called(...each);
        const samples = [...parse(counted.text()).values()].flatMap((each) => each.samples);
        const keys = samples.map(({ name, labels }) => `${name}${JSON.stringify(labels)}`);
        expect(new Set(keys).size).toBe(keys.length);
      }),
    );
  });

  test("has the memory and CPU time of the process", () => {
    const text = createMetrics().text();
    const memory = family(text, "process_resident_memory_bytes");
    const cpu = family(text, "process_cpu_seconds_total");
    expect(memory.type).toBe("gauge");
    expect(memory.samples[0]?.value).toBeGreaterThan(0);
    expect(cpu.type).toBe("counter");
    expect(cpu.samples[0]?.value).toBeGreaterThan(0);
  });

  test("shows a watched figure with a sample for each set of labels", () => {
    const counted = createMetrics();
    counted.watch("parley_failures_total", "counter", "Failures by kind.", () => [
      { labels: { kind: "one" }, value: 0 },
      { labels: { kind: "other" }, value: 2 },
    ]);
    expect(family(counted.text(), "parley_failures_total").samples).toEqual([
      { name: "parley_failures_total", labels: { kind: "one" }, value: 0 },
      { name: "parley_failures_total", labels: { kind: "other" }, value: 2 },
    ]);
  });

  test("reads a watched metric at each scrape", () => {
    const counted = createMetrics();
    let open = 3;
    counted.watch("parley_sockets", "gauge", "Open sockets.", () => open);
    expect(family(counted.text(), "parley_sockets")).toEqual({
      help: "Open sockets.",
      type: "gauge",
      samples: [{ name: "parley_sockets", labels: {}, value: 3 }],
    });
    open = 5;
    expect(family(counted.text(), "parley_sockets").samples[0]?.value).toBe(5);
  });
});

describe("calls", () => {
  test("are counted by operation and outcome", () => {
    const counted = createMetrics();
    for (const code of ["ok", "ok", "forbidden"]) counted.called("sendMessage", code, 1);
    counted.called("getMe", "ok", 1);
    const { type, samples } = family(counted.text(), "parley_calls_total");
    expect(type).toBe("counter");
    expect(samples.map(({ labels, value }) => [labels.operation, labels.code, value])).toEqual([
      ["sendMessage", "ok", 2],
      ["sendMessage", "forbidden", 1],
      ["getMe", "ok", 1],
    ]);
  });

  const histogram = (milliseconds: number[]) => {
    const counted = createMetrics();
    for (const each of milliseconds) counted.called("getMe", "ok", each);
    const { type, samples } = family(counted.text(), "parley_call_seconds");
    expect(type).toBe("histogram");
    const named = (name: string) =>
      samples.filter((sample) => sample.name === `parley_call_seconds_${name}`);
    return {
      buckets: named("bucket").map(({ labels, value }) => ({
        le: labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le),
        value,
      })),
      sum: named("sum")[0]?.value as number,
      count: named("count")[0]?.value as number,
    };
  };

  test("are counted in the first bucket whose bound they do not exceed", () => {
    const { buckets } = histogram([1, 1.5, 5000, 5001]);
    const at = (le: number) => buckets.find((bucket) => bucket.le === le)?.value;
    expect(at(0.001)).toBe(1);
    expect(at(0.0025)).toBe(2);
    expect(at(1)).toBe(2);
    expect(at(5)).toBe(3);
    expect(at(Number.POSITIVE_INFINITY)).toBe(4);
  });

  test("make a histogram that matches a direct count", () => {
    const duration = fc.double({ min: 0, max: 20_000, noNaN: true });
    fc.assert(
      fc.property(fc.array(duration, { minLength: 1, maxLength: 60 }), (durations) => {
        const { buckets, sum, count } = histogram(durations);
        for (const { le, value } of buckets) {
          expect(value).toBe(durations.filter((each) => each <= le * 1000).length);
        }
        const bounds = buckets.map(({ le }) => le);
        expect(bounds).toEqual(bounds.toSorted((one, other) => one - other));
        expect(bounds.at(-1)).toBe(Number.POSITIVE_INFINITY);
        expect(count).toBe(durations.length);
        expect(sum).toBeCloseTo(durations.reduce((one, other) => one + other, 0) / 1000, 6);
      }),
    );
  });
});
