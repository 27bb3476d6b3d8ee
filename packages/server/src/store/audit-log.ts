import type { AuditAction } from "@parley/protocol";
import { bindings, decoded, insert, type Sql } from "./sql.ts";

/** The audit log is append-only: entries are added, and pruned when they are old. */
export const auditReads = {
  /** Entries that match, newest first. */
  async auditLog(db: Sql, query: AuditQuery): Promise<AuditRecord[]> {
    const { sql, values } = auditQuery(query);
    const rows = await db.all<AuditRow>(sql, values);
    return rows.map((row) => ({ ...row, details: decoded(row.details) }));
  },
};

export const auditWrites = {
  async insertAuditEntry(db: Sql, entry: NewAuditEntry): Promise<void> {
    const { at, action, account, details } = entry;
    await insert(db, "audit_log", { at, action, account, details: db.json(details) });
  },
  /** Deletes up to `most` entries from before a time, and returns how many it deleted. */
  pruneAuditLog: (db: Sql, before: number, most: number) =>
    db.change(
      "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE at < $1 LIMIT $2)",
      [before, most],
    ),
};

export interface NewAuditEntry {
  readonly at: number;
  readonly action: AuditAction;
  /** The username of the account that it concerns. */
  readonly account: string | null;
  /** Never what somebody typed or wrote, and never a secret. */
  readonly details: AuditDetails;
}

export type AuditDetails = Readonly<Record<string, string | number | boolean | null>>;

export interface AuditRecord extends Omit<NewAuditEntry, "action"> {
  readonly id: number;
  /** A newer version may have written actions that this one does not know. */
  readonly action: string;
}

export interface AuditQuery {
  action?: string | undefined;
  account?: string | undefined;
  /** Return only entries of this time or later. */
  since?: number | undefined;
  /** Return only entries with a lower id. */
  before?: number | undefined;
  limit: number;
}

type AuditRow = Omit<AuditRecord, "details"> & { details: string | AuditDetails };

/** The statement of a query and its values. Only given filters are in it, so that it uses an index. */
function auditQuery({ action, account, since, before, limit }: AuditQuery) {
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
