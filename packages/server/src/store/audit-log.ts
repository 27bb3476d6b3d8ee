import type { AuditAction } from "@parley/protocol";
import { given, json, reader, type Sql } from "./sql.ts";

/** The audit log is append-only: entries are added, and pruned when they are old. */
export const auditReads = {
  /** Entries that match, newest first. */
  auditLog: (db: Sql, { action, account, since, before, limit }: AuditQuery) =>
    db.allAs(readEntry)`
      SELECT id, at, action, account, details FROM audit_log
      WHERE ${given({
        "action = ?": action,
        "account = ?": account,
        "at >= ?": since,
        "id < ?": before,
      })} ORDER BY id DESC LIMIT ${limit}`,
};

export const auditWrites = {
  async insertAuditEntry(db: Sql, entry: NewAuditEntry): Promise<void> {
    await db.insert("audit_log", { ...entry, details: json(entry.details) });
  },
  /** Deletes up to `most` entries from before a time, and returns how many it deleted. */
  pruneAuditLog: (db: Sql, before: number, most: number) =>
    db.prune("audit_log", "at", before, most),
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

const readEntry = reader<AuditRecord>({ json: ["details"] });
