import type { ReportReads, ReportWrites } from "../reports.ts";
import {
  INSERT_REPORT,
  PRUNE_REPORTS,
  REPORTS,
  RESOLVE_REPORT,
  type ReportRow,
  reportQuery,
  reportValues,
  toReport,
} from "../shared/reports.ts";
import type { Connection } from "./connection.ts";

export function reportReads(db: Connection): ReportReads {
  const byId = db.query<ReportRow>(`${REPORTS} WHERE r.id = ?`);
  return {
    report: (id) => {
      const row = byId.get(id);
      return row && toReport(row);
    },
    reports: (query) => {
      const { sql, values } = reportQuery(query);
      return db
        .query<ReportRow>(sql)
        .all(...values)
        .map(toReport);
    },
  };
}

export function reportWrites(db: Connection): ReportWrites {
  const insert = db.change(INSERT_REPORT);
  const resolve = db.change(RESOLVE_REPORT);
  const prune = db.change(PRUNE_REPORTS);
  return {
    insertReport: (report) => insert.run(...reportValues(report)).changes > 0,
    resolveReport: (id, { at, by, note }) => resolve.run(id, at, by, note).changes > 0,
    pruneReports: (before, most) => prune.run(before, most).changes,
  };
}
