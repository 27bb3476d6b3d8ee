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
  "webhook_lanes",
  "webhooks",
];

/** Indexes of the few rows that still wait for something. */
const SHORT_INDEXES = [
  "tool_calls_pending",
  "deliveries_pending",
  "turns_waiting",
  "turns_running",
];

/** The operator's statistics count everything. */
const isStatistics = (sql: string) => sql.includes("AS active_month");

test("no statement of the SQLite store reads a whole table", () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-plans-"));
  const db = openDatabase(join(folder, "parley.db"));
  try {
    migrate(db);
    const statements = recordedStatements();
    expect(statements.length).toBeGreaterThan(200);
    const slow = statements
      .filter((sql) => !isStatistics(sql))
      .flatMap((sql) =>
        db
          .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
          .all()
          .filter(({ detail }) => readsWholeTable(sql, detail))
          .map(({ detail }) => `${detail}: ${sql}`),
      );
    expect(slow).toEqual([]);
  } finally {
    db.close();
    rmSync(folder, { recursive: true });
  }
});

function recordedStatements(): string[] {
  const statements = new Set<string>();
  const record = (sql: string) => {
    statements.add(sql);
    return { get: () => null, all: () => [], run: () => ({ changes: 0, lastInsertRowid: 0 }) };
  };
  const recording: Connection = { wrote: false, query: record, change: record };
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
  return !SHORT_INDEXES.includes(index) && tablesOf(sql, name).some(grows);
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
