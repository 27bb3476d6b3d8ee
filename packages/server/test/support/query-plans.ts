import { Database } from "bun:sqlite";

/** Tables that stay small, or that these statements are meant to read as a whole. */
const WHOLE_TABLES = [
  "abandoned_blobs",
  "agent_keys",
  // Operators page through it from the newest entry.
  "audit_log",
  "changes_pruned",
  "conversation_erasures",
  "erasures",
  "history",
  "incoming_hooks",
  "operators",
  // Few, and deleted some time after they are resolved.
  "reports",
  "second_factors",
  "service_keys",
  "sqlite_schema",
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

/** Records the statements that this process prepares. */
export function recordStatements(): ReadonlySet<string> {
  const statements = new Set<string>();
  const query = Database.prototype.query;
  Database.prototype.query = function (this: Database, sql: string) {
    statements.add(sql);
    return query.call(this, sql);
  } as typeof query;
  return statements;
}

/** The steps of plans that read a whole table, with their statements. `db` has the schema. */
export function wholeTableSteps(db: Database, statements: ReadonlySet<string>): string[] {
  return [...statements]
    .filter((sql) => /^\s*(WITH|SELECT|INSERT|UPDATE|DELETE)\b/.test(sql))
    .filter((sql) => !isStatistics(sql))
    .flatMap((sql) =>
      planOf(db, sql)
        .filter((detail) => readsWholeTable(sql, detail))
        .map((detail) => `${detail}: ${sql}`),
    );
}

/** The indexes that a statement uses. */
export const indexesOf = (db: Database, sql: string): string[] =>
  planOf(db, sql).flatMap((detail) => STEP.exec(detail)?.[3] ?? []);

const planOf = (db: Database, sql: string): string[] =>
  db
    .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
    .all()
    .map(({ detail }) => detail);

const STEP = /^(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?INDEX (\w+))?/;

/** Whether a step of a plan visits all rows of a table that grows. */
function readsWholeTable(sql: string, detail: string): boolean {
  const [step, kind, name = "", index = ""] = STEP.exec(detail) ?? [];
  if (step === undefined || detail.includes("VIRTUAL TABLE")) return false;
  // The first rows in the order of the table.
  if (/^SELECT [^()]+ FROM \w+ ORDER BY id LIMIT \d+$/.test(sql)) return false;
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
  return [...sql.matchAll(named)]
    .map(([, aliased, own]) => aliased ?? own ?? "")
    .filter((table) => !sql.includes(`${table} AS (`));
}
