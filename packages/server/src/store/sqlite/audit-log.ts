import type { AuditReads, AuditWrites } from "../audit-log.ts";
import { type AuditRow, auditQuery, PRUNE_AUDIT_LOG, toAuditRecord } from "../shared/audit-log.ts";
import type { Connection } from "./connection.ts";

export const auditReads = (db: Connection): AuditReads => ({
  auditLog: (query) => {
    const { sql, values } = auditQuery(query);
    return db
      .query<AuditRow>(sql)
      .all(...values)
      .map(toAuditRecord);
  },
});

export function auditWrites(db: Connection): AuditWrites {
  const insert = db.change(
    "INSERT INTO audit_log (at, action, account, details) VALUES (?, ?, ?, ?)",
  );
  const prune = db.change(PRUNE_AUDIT_LOG);
  return {
    insertAuditEntry: ({ at, action, account, details }) =>
      void insert.run(at, action, account, JSON.stringify(details)),
    pruneAuditLog: (before, most) => prune.run(before, most).changes,
  };
}
