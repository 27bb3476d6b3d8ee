import { operations, type Report } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import { visibleMessage } from "../domain/access.ts";
import { createPages } from "../domain/pagination.ts";
import { NOBODY } from "../rules/accounts.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { iso, isoOrNull } from "../rules/time.ts";
import { type AnyCaller, actorOf, type Caller } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { MessageRecord } from "../store/message-records.ts";
import type { ReportRecord } from "../store/reports.ts";
import type { ReadTx } from "../store/store.ts";

export const reports = createResource<"config">();

const reportPages = createPages(z.string(), ({ id }: Report) => id);

reports.audited(operations.reportMessage, async (tx, record, context, { message_id, reason }) => {
  const { caller, origin } = context;
  const { message } = await visibleMessage(tx, message_id, caller);
  const [shown] = await tx.messageViews([message_id], NOBODY);
  if (!shown) throw notFound("message");
  if (isOwn(await tx.account(shown.sender.username), caller)) {
    throw forbidden("you cannot report your own message");
  }
  const id = Bun.randomUUIDv7();
  const isNew = await tx.insertReport({
    id,
    at: Date.now(),
    reporter_id: caller.account.id,
    sender_id: message.sender_id,
    reason,
    message: shown,
    around: await idsAround(tx, message, caller.account.id),
  });
  if (!isNew) return;
  const { username: account } = shown.sender;
  const reporter = caller.account.username;
  await record("message_reported", { account, report: id, reporter, origin });
});

reports.read(operations.getReports, async (tx, { config }, { resolved, ...input }) => {
  const { after: before, limit, of } = reportPages(input, config);
  return of(await reportViews(tx, await tx.reports({ resolved, before, limit })));
});

reports.audited(operations.resolveReport, async (tx, record, context, input) => {
  const { report_id, note = null } = input;
  if (!(await tx.report(report_id))) throw notFound("report");
  const by = nameOf(context.caller);
  if (!(await tx.resolveReport(report_id, { at: Date.now(), by, note }))) {
    throw conflict("the report is resolved already");
  }
  const resolved = await tx.report(report_id);
  const [report] = await reportViews(tx, resolved ? [resolved] : []);
  if (!report) throw notFound("report");
  const account = report.message.sender.username;
  await record("report_resolved", { ...actorOf(context), account, report: report_id });
  return report;
});

/** Whether the sender is the caller, or an account that the caller's incoming hooks post as. */
const isOwn = (sender: AccountRecord | null, { account }: Caller) =>
  sender?.id === account.id || (sender?.owner_id === account.id && sender.provider === null);

/** Who resolves a report: an operator's username, or the name of a service key. */
const nameOf = (caller: AnyCaller) =>
  caller.kind === "service" ? `service:${caller.key.name}` : caller.account.username;

/** How many messages around a reported one operators see, and how many of them before it. */
const MESSAGES_AROUND = 5;
const MESSAGES_BEFORE = 3;

/** The ids of the messages around one that the viewer can see: fewer only where there are fewer. */
async function idsAround(
  tx: ReadTx,
  { conversation_id: conversationId, seq }: MessageRecord,
  viewerId: number,
): Promise<string[]> {
  const view = { conversationId, viewerId, limit: MESSAGES_AROUND };
  const older = await tx.messagePage({ ...view, from: { seq, direction: "older" } });
  const newer = await tx.messagePage({ ...view, from: { seq, direction: "newer" } });
  const before = Math.max(MESSAGES_BEFORE, MESSAGES_AROUND - newer.items.length);
  const nearest = older.items.slice(-before);
  const later = newer.items.slice(0, MESSAGES_AROUND - nearest.length);
  return [...nearest, ...later].map(({ id }) => id);
}

/** Reports as operators see them: nothing of a conversation but the message and those around it. */
async function reportViews(tx: ReadTx, reports: readonly ReportRecord[]): Promise<Report[]> {
  const ids = new Set(reports.flatMap(({ around }) => around));
  const shown = new Map((await tx.messageViews([...ids], NOBODY)).map((each) => [each.id, each]));
  return reports.map(({ at, resolved_at, around, ...report }) => ({
    ...report,
    at: iso(at),
    around: around.flatMap((id) => shown.get(id) ?? []),
    conversation_id: report.message.conversation_id,
    resolved_at: isoOrNull(resolved_at),
  }));
}
