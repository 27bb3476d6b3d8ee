import type { AuditReads, AuditWrites } from "../audit-log.ts";
import { type AuditRow, auditQuery, toAuditRecord } from "../shared/audit-log.ts";
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
  const prune = db.change(
    "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < ? LIMIT ?)",
  );
  return {
    insertAuditEntry: ({ at, action, account, details }) =>
      void insert.run(at, action, account, JSON.stringify(details)),
    pruneAuditLog: (before, most) => prune.run(before, most).changes,
  };
}
