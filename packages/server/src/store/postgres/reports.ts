import type { ReportReads, ReportWrites } from "../reports.ts";
import {
  encodeReported,
  REPORTS,
  type ReportRow,
  reportQuery,
  toReport,
} from "../shared/reports.ts";
import type { Methods } from "./unit.ts";

export const reportReads: Methods<keyof ReportReads> = {
  report: async (unit, id) => {
    const row = await unit.get<ReportRow>(`${REPORTS} WHERE r.id = $1`, id);
    return row && toReport(row);
  },
  reports: async (unit, query) => {
    const { sql, values } = reportQuery(query);
    return (await unit.all<ReportRow>(sql, ...values)).map(toReport);
  },
};

export const reportWrites: Methods<keyof ReportWrites> = {
  insertReport: async (unit, { id, at, reporter_id, sender_id, reason, message, around }) => {
    const { count } = await unit.change(
      `INSERT INTO reports (id, at, reporter_id, sender_id, message_id, reason, message, around)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
      id,
      at,
      reporter_id,
      sender_id,
      message.id,
      reason,
      encodeReported(message),
      JSON.stringify(around),
    );
    return count > 0;
  },
  resolveReport: async (unit, id, { at, by, note }) => {
    const { count } = await unit.change(
      `UPDATE reports SET resolved_at = $2, resolved_by = $3, note = $4
       WHERE id = $1 AND resolved_at IS NULL`,
      id,
      at,
      by,
      note,
    );
    return count > 0;
  },
  pruneReports: async (unit, before, most) => {
    const { count } = await unit.change(
      "DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE resolved_at < $1 LIMIT $2)",
      before,
      most,
    );
    return count;
  },
};
