import type { Account, Message } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import type { NewReport, ReportQuery, ReportRecord } from "../reports.ts";
import { type JoinedAccount, joinedAccount, PUBLIC_ACCOUNT } from "./accounts.ts";
import { bindings } from "./bindings.ts";

export interface ReportRow extends AccountRow, JoinedAccount<"sender"> {
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
export const REPORTS = `SELECT r.id, r.at, r.reason, r.message, r.around, r.resolved_at,
    r.resolved_by, r.note, ${PUBLIC_ACCOUNT}, ${sender.columns}
  FROM reports r JOIN accounts a ON a.id = r.reporter_id
  JOIN accounts sender ON sender.id = r.sender_id`;

/** Earlier versions stored messages without files. */
type StoredMessage = Omit<Message, "files"> & Partial<Pick<Message, "files">>;

export const toReport = (row: ReportRow): ReportRecord => ({
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

export const INSERT_REPORT = `INSERT INTO reports
    (id, at, reporter_id, sender_id, message_id, reason, message, around)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`;

/** The parameters of `INSERT_REPORT`. */
export const reportValues = (report: NewReport) => [
  report.id,
  report.at,
  report.reporter_id,
  report.sender_id,
  report.message.id,
  report.reason,
  encodeReported(report.message),
  JSON.stringify(report.around),
];

export const RESOLVE_REPORT = `UPDATE reports SET resolved_at = $2, resolved_by = $3, note = $4
  WHERE id = $1 AND resolved_at IS NULL`;

export const PRUNE_REPORTS =
  "DELETE FROM reports WHERE id IN (SELECT id FROM reports WHERE resolved_at < $1 LIMIT $2)";

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
export function reportQuery({ resolved, reporterId, before, limit }: ReportQuery) {
  const { values, bind } = bindings();
  const filters = ["true"];
  if (resolved !== undefined) filters.push(`r.resolved_at IS ${resolved ? "NOT " : ""}NULL`);
  if (reporterId !== undefined) filters.push(`r.reporter_id = ${bind(reporterId)}`);
  if (before !== undefined) filters.push(`r.id < ${bind(before)}`);
  const sql = `${REPORTS} WHERE ${filters.join(" AND ")} ORDER BY r.id DESC LIMIT ${bind(limit)}`;
  return { sql, values };
}
