import { createHash } from "node:crypto";
import { type EventContract, type EventFrame, events } from "@parley/protocol";
import type { LoggedChange } from "../changes/change.ts";
import type { Cursor, LogEntry } from "../changes/log.ts";
import type { Store } from "../store/store.ts";
import type { NewDelivery, WebhookRecord } from "../store/webhooks.ts";
import { type CreatorChecks, disableUnreadable } from "./webhook-creator.ts";

type LoggedEvent = Extract<LoggedChange, { kind: "event" }>;

/** Rows per unit of work, so that other units are not held up. */
const QUEUED_AT_ONCE = 200;

/**
 * Queues the deliveries of changes, as the log has them. The same changes may be queued again: they
 * have the same message ids. Returns the last ones, which the caller queues itself, perhaps none.
 */
export async function queueChanges(
  entries: readonly LogEntry[],
  checks: CreatorChecks & { readonly store: Pick<Store, "read" | "note"> },
): Promise<NewDelivery[]> {
  const { store } = checks;
  const all = await store.read((tx) => tx.webhooks());
  const webhooks = all.filter(({ disabled }) => disabled === null);
  const matching = entries.flatMap(({ cursor, changes }) =>
    changes.flatMap((change, index) => deliveriesOf(change, { cursor, index }, webhooks)),
  );
  const receivers = new Set(matching.map(({ webhook_id }) => webhook_id));
  const ofOperators = webhooks.filter(({ id, creator }) => creator !== null && receivers.has(id));
  const ids = ofOperators.map(({ id }) => id);
  const unreadable = await disableUnreadable(ids, checks);
  const deliveries = matching.filter(({ webhook_id }) => !unreadable.has(webhook_id));
  while (deliveries.length > QUEUED_AT_ONCE) {
    const batch = deliveries.splice(0, QUEUED_AT_ONCE);
    // Not synced to disk by itself: if a power cut undoes it, it also undoes the later cursor.
    await store.note((tx) => tx.queueDeliveries(batch));
  }
  return deliveries;
}

interface Position {
  readonly cursor: Cursor;
  /** Of the change in its entry. */
  readonly index: number;
}

function deliveriesOf(
  change: LoggedChange,
  position: Position,
  webhooks: readonly WebhookRecord[],
): NewDelivery[] {
  if (change.kind !== "event" || change.imported || webhooks.length === 0) return [];
  if (isOwn(change)) return [];
  const conversation = conversationOf(change);
  const at = Date.now();
  return webhooks
    .filter(
      ({ events, chat, since }) =>
        position.cursor > since &&
        receives(events, change.name) &&
        (chat === null || chat === conversation || change.concerns?.includes(chat)),
    )
    .map(({ id, chat }) => ({
      webhook_id: id,
      message_id: messageId(id, position, change),
      lane: conversation ?? chat ?? `account ${frameOf(change).params.username}`,
      event: change.name,
      change: withoutAudience(change),
      at,
    }));
}

/**
 * Whether a change concerns an account's own clients alone, such as whom a person has blocked, which
 * messages they have hidden, or the settings of their agents: its event always does, or it has `own_seq`.
 */
function isOwn(change: LoggedEvent): boolean {
  const { isOwn, carries }: EventContract = events[change.name];
  return isOwn || (carries === "own_seq" && frameOf(change).own_seq !== undefined);
}

/** A delivery does not need the people who receive a new name, who may be many. */
const withoutAudience = ({ concerns, ...change }: LoggedEvent): LoggedEvent =>
  concerns ? { ...change, to: { users: [] } } : change;

/** Whether a webhook for these events receives one. */
export const receives = (events: readonly string[], name: string) =>
  events.length === 0 || events.includes(name);

/** The conversation that an event is about; null for changes of accounts. */
function conversationOf(change: LoggedEvent): string | null {
  if (change.at) return change.at.conversation_id;
  if ("conversation" in change.to) return change.to.conversation;
  return frameOf(change).params.conversation_id ?? null;
}

type Params = { conversation_id?: string; username?: string };
const frameOf = ({ data }: LoggedEvent) =>
  JSON.parse(data ?? '{"params":{}}') as EventFrame & { params: Params };

function messageId(webhookId: string, { cursor, index }: Position, change: LoggedEvent): string {
  const source = JSON.stringify([webhookId, cursor, index, change]);
  return `msg_${createHash("sha256").update(source).digest("base64url").slice(0, 32)}`;
}
