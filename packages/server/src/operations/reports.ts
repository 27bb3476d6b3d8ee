import { operations, type Report } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import { visibleMessage } from "../domain/access.ts";
import { createPages } from "../domain/pagination.ts";
import { idsAround, reportViews } from "../domain/reports.ts";
import { NOBODY } from "../rules/accounts.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { type AnyCaller, actorOf, type Caller } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";

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

reports.audited(
  operations.resolveReport,
  async (tx, record, context, { report_id, note = null }) => {
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
  },
);

/** Whether the sender is the caller, or an account that the caller's incoming hooks post as. */
const isOwn = (sender: AccountRecord | null, { account }: Caller) =>
  sender?.id === account.id || (sender?.owner_id === account.id && sender.provider === null);

/** Who resolves a report: an operator's username, or the name of a service key. */
const nameOf = (caller: AnyCaller) =>
  caller.kind === "service" ? `service:${caller.key.name}` : caller.account.username;
