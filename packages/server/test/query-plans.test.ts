import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Connection } from "../src/store/sqlite/connection.ts";
import { migrate, openDatabase } from "../src/store/sqlite/connection.ts";
import { reads, writes } from "../src/store/sqlite/index.ts";

/** Tables that stay small, or that these statements are meant to read as a whole. */
const WHOLE_TABLES = [
  "abandoned_blobs",
  "agent_keys",
  "erasures",
  "history",
  "incoming_hooks",
  "operators",
  "second_factors",
  "service_keys",
  "tool_servers",
  "webhooks",
];

/** Indexes of the few rows that still wait for something. */
const SHORT_INDEXES = [
  "tool_calls_pending",
  "deliveries_pending",
  "turns_waiting",
  "turns_running",
];

/** Narrow indexes that are read as a whole, at most once a minute. */
const SUMMED_INDEXES = ["files_by_size"];

/** The operator's statistics count everything. */
const isStatistics = (sql: string) => sql.includes("AS active_month");

test("no statement of the SQLite store reads a whole table", () => {
  using plans = openPlans();
  const statements = recordedStatements();
  expect(statements.length).toBeGreaterThan(200);
  const slow = statements
    .filter((sql) => !isStatistics(sql))
    .flatMap((sql) =>
      plans
        .of(sql)
        .filter((detail) => readsWholeTable(sql, detail))
        .map((detail) => `${detail}: ${sql}`),
    );
  expect(slow).toEqual([]);
});

test("ended deliveries are pruned without reading pending ones", () => {
  using plans = openPlans();
  const isPruning = (sql: string) =>
    sql.startsWith("DELETE FROM deliveries") && sql.includes("status <> 'pending'");
  const [sql = "", ...others] = recordedStatements().filter(isPruning);
  expect(others).toEqual([]);
  const indexes = plans.of(sql).flatMap((detail) => STEP.exec(detail)?.[3] ?? []);
  expect(indexes).toEqual(["deliveries_ended", "deliveries_ended"]);
});

/** The plans of statements, on a database without data. */
function openPlans() {
  const folder = mkdtempSync(join(tmpdir(), "parley-plans-"));
  const db = openDatabase(join(folder, "parley.db"));
  migrate(db);
  return {
    of: (sql: string) =>
      db
        .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => detail),
    [Symbol.dispose]: () => {
      db.close();
      rmSync(folder, { recursive: true });
    },
  };
}

function recordedStatements(): string[] {
  const statements = new Set<string>();
  const record = (sql: string) => {
    statements.add(sql);
    return { get: () => null, all: () => [], run: () => ({ changes: 0, lastInsertRowid: 0 }) };
  };
  const recording: Connection = {
    wrote: false,
    begin: () => {},
    own: () => {},
    changes: () => {},
    query: record,
    change: record,
  };
  reads(recording);
  writes(recording);
  return [...statements];
}

const STEP = /^(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?INDEX (\w+))?/;

/** Whether a step of a plan visits all rows of a table that grows. */
function readsWholeTable(sql: string, detail: string): boolean {
  const [step, kind, name = "", index = ""] = STEP.exec(detail) ?? [];
  if (step === undefined || detail.includes("VIRTUAL TABLE")) return false;
  // Without an index, a search for the last row visits rows until one fits.
  if (kind === "SEARCH" && (detail !== step || !sql.includes("WHERE"))) return false;
  return ![...SHORT_INDEXES, ...SUMMED_INDEXES].includes(index) && tablesOf(sql, name).some(grows);
}

const grows = (table: string) => !WHOLE_TABLES.includes(table);

/** The tables that a name in a plan stands for. None for a subquery: its steps are listed too. */
function tablesOf(sql: string, name: string): string[] {
  const named = new RegExp(
    `(?:FROM|JOIN) (\\w+) ${name}\\b|(?:FROM|JOIN|UPDATE) (${name})\\b`,
    "g",
  );
  return [...sql.matchAll(named)].map(([, aliased, own]) => aliased ?? own ?? "");
}
