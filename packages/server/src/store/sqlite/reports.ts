import type { ReportReads, ReportWrites } from "../reports.ts";
import {
  encodeReported,
  REPORTS,
  type ReportRow,
  reportQuery,
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
  const insert = db.change(
    `INSERT INTO reports (id, at, reporter_id, sender_id, message_id, reason, message, around)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const resolve = db.change(
    `UPDATE reports SET resolved_at = ?2, resolved_by = ?3, note = ?4
     WHERE id = ?1 AND resolved_at IS NULL`,
  );
  const prune = db.change(
    "DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE resolved_at < ? LIMIT ?)",
  );
  return {
    insertReport: ({ id, at, reporter_id, sender_id, reason, message, around }) => {
      const { changes } = insert.run(
        id,
        at,
        reporter_id,
        sender_id,
        message.id,
        reason,
        encodeReported(message),
        JSON.stringify(around),
      );
      return changes > 0;
    },
    resolveReport: (id, { at, by, note }) => resolve.run(id, at, by, note).changes > 0,
    pruneReports: (before, most) => prune.run(before, most).changes,
  };
}
