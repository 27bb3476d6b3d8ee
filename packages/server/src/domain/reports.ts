import type { Report } from "@parley/protocol";
import { NOBODY } from "../rules/accounts.ts";
import { iso, isoOrNull } from "../rules/time.ts";
import type { MessageRecord } from "../store/message-records.ts";
import type { ReportRecord } from "../store/reports.ts";
import type { ReadTx } from "../store/store.ts";

/** How many messages around a reported one operators see, and how many of them before it. */
const MESSAGES_AROUND = 5;
const MESSAGES_BEFORE = 3;

/** The ids of the messages around one that the viewer can see: fewer only where there are fewer. */
export async function idsAround(
  tx: ReadTx,
  { conversation_id: conversationId, seq }: MessageRecord,
  viewerId: number,
): Promise<string[]> {
  const view = { conversationId, viewerId, limit: MESSAGES_AROUND };
  const older = await tx.messagePage({ ...view, from: { seq, direction: "older" } });
  const newer = await tx.messagePage({ ...view, from: { seq, direction: "newer" } });
  const before = Math.max(MESSAGES_BEFORE, MESSAGES_AROUND - newer.items.length);
  const nearest = older.items.slice(-before);
  return [...nearest, ...newer.items.slice(0, MESSAGES_AROUND - nearest.length)].map(
    ({ id }) => id,
  );
}

/** Reports as operators see them: nothing of a conversation but the message and those around it. */
export async function reportViews(tx: ReadTx, reports: readonly ReportRecord[]): Promise<Report[]> {
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
