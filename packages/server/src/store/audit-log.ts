import type { AuditAction } from "@parley/protocol";
import type { Awaitable } from "./awaitable.ts";

/** The audit log is append-only: entries are added, and pruned when they are old. */
export interface AuditReads {
  /** Entries that match, newest first. */
  auditLog(query: AuditQuery): Awaitable<AuditRecord[]>;
}

export interface AuditWrites {
  insertAuditEntry(entry: NewAuditEntry): Awaitable<void>;
  /** Deletes up to `most` entries from before a time, and returns how many it deleted. */
  pruneAuditLog(before: number, most: number): Awaitable<number>;
}

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
