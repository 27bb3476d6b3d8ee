import type { Account, Message } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import { type JoinedAccount, joinedAccount, PUBLIC_ACCOUNT } from "./account-records.ts";
import { bindings, getAs, hasChanged, insertNew, type Sql } from "./sql.ts";

/** Messages that people reported to the operators. */
export const reportReads = {
  report: (db: Sql, id: string) => getAs(db, toReport, `${REPORTS} WHERE r.id = $1`, [id]),
  /** Reports that match, newest first. */
  async reports(db: Sql, query: ReportQuery): Promise<ReportRecord[]> {
    const { sql, values } = reportQuery(query);
    return (await db.all<ReportRow>(sql, values)).map(toReport);
  },
};

export const reportWrites = {
  /** Returns false, and changes nothing, when the person has reported the message before. */
  async insertReport(db: Sql, { message, around, ...report }: NewReport): Promise<boolean> {
    const row = {
      ...report,
      message_id: message.id,
      message: encodeReported(message),
      around: JSON.stringify(around),
    };
    return insertNew(db, "reports", row);
  },
  /** Returns false, and changes nothing, when the report is resolved already or does not exist. */
  resolveReport: (db: Sql, id: string, { at, by, note }: Resolution) =>
    hasChanged(
      db,
      `UPDATE reports SET resolved_at = $2, resolved_by = $3, note = $4
       WHERE id = $1 AND resolved_at IS NULL`,
      [id, at, by, note],
    ),
  /** Deletes up to `most` reports resolved before a time, and returns how many it deleted. */
  pruneReports: (db: Sql, before: number, most: number) =>
    db.change(
      "DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE resolved_at < $1 LIMIT $2)",
      [before, most],
    ),
};

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

interface ReportRow extends AccountRow, JoinedAccount<"sender"> {
  id: string;
  at: number;
  reason: string;
  message: string;
  around: string;
  resolved_at: number | null;
  resolved_by: string | null;
  note: string | null;
}

const sender = joinedAccount("sender");

/** Selects `ReportRow`s: with the reporter's account and the sender's as they are now. */
const REPORTS = `SELECT r.id, r.at, r.reason, r.message, r.around, r.resolved_at,
    r.resolved_by, r.note, ${PUBLIC_ACCOUNT}, ${sender.columns}
  FROM reports r JOIN accounts a ON a.id = r.reporter_id
  JOIN accounts sender ON sender.id = r.sender_id`;

/** Earlier versions stored messages without files. */
type StoredMessage = Omit<Message, "files"> & Partial<Pick<Message, "files">>;

const toReport = (row: ReportRow): ReportRecord => ({
  id: row.id,
  at: row.at,
  reporter: publicAccount(row),
  reason: row.reason,
  message: {
    files: [],
    ...(JSON.parse(row.message) as StoredMessage),
    sender: publicAccount(sender.of(row)),
  },
  around: JSON.parse(row.around) as string[],
  resolved_at: row.resolved_at,
  resolved_by: row.resolved_by,
  note: row.note,
});

/**
 * Encodes the copy of a reported message. It has no display names, which are erased with accounts: the
 * sender is shown as it is when the report is read, others by their usernames.
 */
function encodeReported({ sender: _, ...message }: Message): string {
  const { action, uses } = message;
  return JSON.stringify({
    ...message,
    action: action && { ...action, by: unnamed(action.by) },
    uses: uses.map((use) => ({ ...use, by: unnamed(use.by) })),
  });
}

/** Version 0: every client that knows the account has its name from a newer version. */
const unnamed = (account: Account): Account => ({
  ...account,
  display_name: account.username,
  version: 0,
});

/** The statement of a query and its values. Only given filters are in it, so that it uses an index. */
function reportQuery({ resolved, reporterId, before, limit }: ReportQuery) {
  const { values, bind } = bindings();
  const filters = ["true"];
  if (resolved !== undefined) filters.push(`r.resolved_at IS ${resolved ? "NOT " : ""}NULL`);
  if (reporterId !== undefined) filters.push(`r.reporter_id = ${bind(reporterId)}`);
  if (before !== undefined) filters.push(`r.id < ${bind(before)}`);
  const sql = `${REPORTS} WHERE ${filters.join(" AND ")} ORDER BY r.id DESC LIMIT ${bind(limit)}`;
  return { sql, values };
}
