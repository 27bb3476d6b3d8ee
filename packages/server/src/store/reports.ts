import type { Account, Message } from "@parley/protocol";
import type { Awaitable } from "./awaitable.ts";

/** Messages that people reported to the operators. */
export interface ReportReads {
  report(id: string): Awaitable<ReportRecord | null>;
  /** Reports that match, newest first. */
  reports(query: ReportQuery): Awaitable<ReportRecord[]>;
}

export interface ReportWrites {
  /** Returns false, and changes nothing, when the person has reported the message before. */
  insertReport(report: NewReport): Awaitable<boolean>;
  /** Returns false, and changes nothing, when the report is resolved already or does not exist. */
  resolveReport(id: string, resolution: Resolution): Awaitable<boolean>;
  /** Deletes up to `most` reports resolved before a time, and returns how many it deleted. */
  pruneReports(before: number, most: number): Awaitable<number>;
}

export interface NewReport {
  /** Later reports have greater ids. */
  readonly id: string;
  readonly at: number;
  readonly reporter_id: number;
  readonly sender_id: number;
  readonly reason: string;
  /** The message as it is when it is reported. */
  readonly message: Message;
  /** The UUIDs of messages near it. */
  readonly around: readonly string[];
}

export interface Resolution {
  readonly at: number;
  /** The username of an operator, or the name of a service key. */
  readonly by: string;
  readonly note: string | null;
}

export interface ReportRecord extends Omit<NewReport, "reporter_id" | "sender_id"> {
  readonly reporter: Account;
  /** With the sender's account as it is now. */
  readonly message: Message;
  readonly resolved_at: number | null;
  readonly resolved_by: string | null;
  readonly note: string | null;
}

export interface ReportQuery {
  /** Return only resolved reports, or only open ones. */
  resolved?: boolean | undefined;
  /** Return only reports of this account. */
  reporterId?: number | undefined;
  /** Return only reports with a lower id. */
  before?: string | undefined;
  limit: number;
}
