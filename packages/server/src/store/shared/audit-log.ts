import type { AuditDetails, AuditQuery, AuditRecord } from "../audit-log.ts";

export type AuditRow = Omit<AuditRecord, "details"> & { details: string | AuditDetails };

/** SQLite returns JSON as text, PostgreSQL as a value. */
export const toAuditRecord = ({ details, ...row }: AuditRow): AuditRecord => ({
  ...row,
  details: typeof details === "string" ? (JSON.parse(details) as AuditDetails) : details,
});

/** The statement of a query and its values. Only given filters are in it, so that it uses an index. */
export function auditQuery(query: AuditQuery, place: (number: number) => string) {
  const filters = [
    ["action = ", query.action],
    ["account = ", query.account],
    ["at >= ", query.since],
    ["id < ", query.before],
  ] as const;
  const given = filters.flatMap(([test, value]) => (value === undefined ? [] : [{ test, value }]));
  const where = given.map(({ test }, index) => `${test}${place(index + 1)}`).join(" AND ");
  const sql = `SELECT id, at, action, account, details FROM audit_log
    WHERE ${where || "true"} ORDER BY id DESC LIMIT ${place(given.length + 1)}`;
  return { sql, values: [...given.map(({ value }) => value), query.limit] };
}
