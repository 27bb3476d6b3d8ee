import type { AuditDetails, AuditQuery, AuditRecord } from "../audit-log.ts";
import { bindings } from "./bindings.ts";
import { decoded } from "./json.ts";

export const PRUNE_AUDIT_LOG =
  "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < $1 LIMIT $2)";

export type AuditRow = Omit<AuditRecord, "details"> & { details: string | AuditDetails };

export const toAuditRecord = (row: AuditRow): AuditRecord => ({
  ...row,
  details: decoded(row.details),
});

/** The statement of a query and its values. Only given filters are in it, so that it uses an index. */
export function auditQuery({ action, account, since, before, limit }: AuditQuery) {
  const { values, bind } = bindings();
  const filters = ["true"];
  if (action !== undefined) filters.push(`action = ${bind(action)}`);
  if (account !== undefined) filters.push(`account = ${bind(account)}`);
  if (since !== undefined) filters.push(`at >= ${bind(since)}`);
  if (before !== undefined) filters.push(`id < ${bind(before)}`);
  const sql = `SELECT id, at, action, account, details FROM audit_log
    WHERE ${filters.join(" AND ")} ORDER BY id DESC LIMIT ${bind(limit)}`;
  return { sql, values };
}
