import type { AuditReads, AuditWrites } from "../audit-log.ts";
import { type AuditRow, auditQuery, PRUNE_AUDIT_LOG, toAuditRecord } from "../shared/audit-log.ts";
import type { Methods } from "./unit.ts";

export const auditReads: Methods<keyof AuditReads> = {
  auditLog: async (unit, query) => {
    const { sql, values } = auditQuery(query);
    return (await unit.all<AuditRow>(sql, ...values)).map(toAuditRecord);
  },
};

export const auditWrites: Methods<keyof AuditWrites> = {
  insertAuditEntry: async (unit, { at, action, account, details }) => {
    await unit.write(
      "INSERT INTO audit_log (at, action, account, details) VALUES ($1, $2, $3, $4::jsonb)",
      at,
      action,
      account,
      details,
    );
  },
  pruneAuditLog: async (unit, before, most) =>
    (await unit.write(PRUNE_AUDIT_LOG, before, most)).count,
};
