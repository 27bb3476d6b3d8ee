import type { Account, Message } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import { publicAccountAs } from "./account-records.ts";
import { given, reader, type Sql, sql } from "./sql.ts";

/** Messages that people reported to the operators. */
export const reportReads = {
  report: (db: Sql, id: string) => db.getAs(toReport)`${REPORTS} WHERE r.id = ${id}`,
  /** Reports that match, newest first. */
  reports: (db: Sql, { resolved, reporterId, before, limit }: ReportQuery) =>
    db.allAs(toReport)`
      ${REPORTS} WHERE ${given({
        [`r.resolved_at IS ${resolved ? "NOT " : ""}NULL`]: resolved,
        "r.reporter_id = ?": reporterId,
        "r.id < ?": before,
      })} ORDER BY r.id DESC LIMIT ${limit}`,
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
    return db.insertNew("reports", row);
  },
  /** Returns false, and changes nothing, when the report is resolved already or does not exist. */
  resolveReport: (db: Sql, id: string, { at, by, note }: Resolution) =>
    db.hasChanged`
      UPDATE reports SET resolved_at = ${at}, resolved_by = ${by}, note = ${note}
      WHERE id = ${id} AND resolved_at IS NULL`,
  /** Deletes up to `most` reports resolved before a time, and returns how many it deleted. */
  pruneReports: (db: Sql, before: number, most: number) =>
    db.prune("reports", "resolved_at", before, most),
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

/** Selects `ReportRow`s: with the reporter's account and the sender's as they are now. */
const REPORTS = sql`SELECT r.id, r.at, r.reason, r.message, r.around, r.resolved_at,
    r.resolved_by, r.note, ${publicAccountAs("reporter")}, ${publicAccountAs("sender", "sender")}
  FROM reports r JOIN accounts a ON a.id = r.reporter_id
  JOIN accounts sender ON sender.id = r.sender_id`;

/** Earlier versions stored messages without files. */
type StoredMessage = Omit<Message, "files"> & Partial<Pick<Message, "files">>;

type ReportRow = Omit<ReportRecord, "message"> & { message: StoredMessage; sender: AccountRow };

const readReport = reader<ReportRow>({ json: ["message", "around"] });

function toReport(row: object): ReportRecord {
  const { reporter, sender, message, ...report } = readReport(row);
  return {
    ...report,
    reporter: publicAccount(reporter),
    message: { files: [], ...message, sender: publicAccount(sender) },
  };
}

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
