import { replayable } from "../changes/replay.ts";
import { FetchError } from "../security/destination.ts";
import type { GuardedFetch } from "../security/guarded-fetch.ts";
import type { Vault } from "../security/vault.ts";
import type { Attempt, DeliveryRecord, WebhookRecord } from "../store/webhooks.ts";
import { signedHeaders } from "./standard-webhooks.ts";
import { type CreatorChecks, disableUnreadable } from "./webhook-creator.ts";
import { receives } from "./webhook-queue.ts";

/** For everything: resolving, connecting, sending and receiving the head of the response. */
export const ATTEMPT_TIMEOUT_MS = 10_000;
/** A conversation with all of its participants can be large. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** What is needed to send a delivery. */
export interface Loaded {
  /** Null when it was deleted. */
  readonly webhook: WebhookRecord | null;
  /**
   * The event with the current text of its message; null when it became the deletion of the message,
   * and the webhook does not receive deletions.
   */
  readonly body: string | null;
}

/** Loads deliveries right before they are sent. Disables webhooks whose creator may not read them. */
export async function loadDeliveries(
  deliveries: readonly DeliveryRecord[],
  checks: CreatorChecks,
): Promise<Loaded[]> {
  const { store } = checks;
  const ids = [...new Set(deliveries.map(({ webhook_id }) => webhook_id))];
  const webhooks = await store.read((tx) => Promise.all(ids.map((id) => tx.webhook(id))));
  const byId = new Map(webhooks.flatMap((webhook) => (webhook ? [[webhook.id, webhook]] : [])));
  const ofOperators = ids.filter((id) => (byId.get(id)?.creator ?? null) !== null);
  const unreadable = await disableUnreadable(ofOperators, checks);
  // Last: what is deleted until then is not sent.
  const logged = deliveries.map(({ change }) => change);
  const changes = await store.read((tx) => replayable(tx, logged));
  return deliveries.map((delivery, place) => {
    const webhook = byId.get(delivery.webhook_id);
    if (!webhook) return { webhook: null, body: null };
    const change = changes[place];
    const data = change?.kind === "event" ? change.data : "";
    const isUnreadable = unreadable.has(webhook.id);
    return {
      webhook: isUnreadable ? { ...webhook, disabled: "creator" } : webhook,
      body: bodyOf(data, webhook, delivery),
    };
  });
}

/** The frame of the event is used as it is, and not encoded again. */
function bodyOf(data: string, { events }: WebhookRecord, { created_at }: DeliveryRecord) {
  const { method } = JSON.parse(data) as { method: string };
  if (!receives(events, method)) return null;
  const timestamp = new Date(created_at).toISOString();
  return `{"type":${JSON.stringify(method)},"timestamp":"${timestamp}","data":${data}}`;
}

export const secretBinding = (webhookId: string) => ({
  owner_id: 0,
  provider: `webhook ${webhookId}`,
});

export interface Sending {
  readonly fetch: GuardedFetch;
  readonly vault: Vault;
  readonly signal: AbortSignal;
}

/** Sends a delivery once. Throws only after an abort by the signal. */
export async function attemptDelivery(
  { id, url, secret }: WebhookRecord,
  { message_id }: DeliveryRecord,
  body: string,
  { fetch, vault, signal }: Sending,
): Promise<Attempt> {
  const at = Date.now();
  const started = performance.now();
  const ended = (status: number | null, error: string | null): Attempt => ({
    at,
    duration_ms: Math.round(performance.now() - started),
    status,
    error,
  });
  try {
    const key = vault.open(secret, secretBinding(id));
    const response = await fetch(url, {
      method: "POST",
      headers: { ...signedHeaders({ id: message_id, at, body }, key), "user-agent": "Parley" },
      body,
      timeoutMs: ATTEMPT_TIMEOUT_MS,
      maxRequestBytes: MAX_BODY_BYTES,
      signal,
      reuseConnection: true,
    });
    // Fails if the connection broke within the body, but the status has decided.
    await response.body?.cancel().catch(() => {});
    return ended(response.status, response.ok ? null : problemOf(response.status));
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    return ended(null, error.message);
  }
}

const problemOf = (status: number) =>
  status >= 300 && status < 400
    ? "the response is a redirect, which is not followed"
    : `the response has the status ${status}`;
