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
  insertReport: async (unit, report) =>
    (await unit.change(INSERT_REPORT, ...reportValues(report))).count > 0,
  resolveReport: async (unit, id, { at, by, note }) =>
    (await unit.change(RESOLVE_REPORT, id, at, by, note)).count > 0,
  pruneReports: async (unit, before, most) =>
    (await unit.change(PRUNE_REPORTS, before, most)).count,
};
