import { operations, type Webhook, type WebhookDelivery } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import type { Config } from "../config/config.ts";
import { joinedConversation } from "../domain/access.ts";
import { createPages } from "../domain/pagination.ts";
import { newSecret } from "../outbound/standard-webhooks.ts";
import { secretBinding } from "../outbound/webhook-attempt.ts";
import { mayCreatorRead } from "../outbound/webhook-creator.ts";
import { CLAIM_MS, WEBHOOK_SUBSCRIPTION } from "../outbound/webhooks.ts";
import { NOBODY } from "../rules/accounts.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import { type AnyCaller, actorOf } from "../security/caller.ts";
import { checkUrlField } from "../security/destination.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import type { DeliveryRecord, WebhookFields, WebhookRecord } from "../store/webhooks.ts";

type Needs = "config" | "store" | "vault" | "webhooks" | "audit";
export const webhooks = createResource<Needs>();

/** Every event is matched against all of them. */
const MAX_WEBHOOKS = 100;
const deliveryPages = createPages(z.int(), ({ id }: WebhookDelivery) => id);

webhooks.handle(operations.createWebhook, async (context, input) => {
  const { config, store, audit, vault, webhooks, caller } = context;
  const { url, events, chat_id: chat = null, name = null } = input;
  await checkUrlField(url, config.allowPrivateAddresses);
  const since = await store.changes.head();
  const result = await audit.write(async (tx, record) => {
    await checkReading(tx, chat, caller);
    const creator = usernameOf(caller);
    const known = await tx.webhooks();
    const isNamed = (each: WebhookRecord) => each.name === name && each.creator === creator;
    const named = name === null ? undefined : known.find(isNamed);
    if (named) {
      if (named.chat !== chat) throw conflict(`the webhook ${name} is of another conversation`);
      await change(tx, named, { url, events });
      await record("webhook_changed", { ...actorOf(context), webhook: named.id });
      return { id: named.id, secret: vault.open(named.secret, secretBinding(named.id)) };
    }
    const { length } = known;
    if (length >= MAX_WEBHOOKS) throw conflict(`there are ${MAX_WEBHOOKS} webhooks already`);
    // An earlier webhook may have left a position behind.
    if (length === 0) await tx.advanceSubscription(WEBHOOK_SUBSCRIPTION, since);
    const id = Bun.randomUUIDv7();
    const secret = newSecret();
    const webhook = { id, name, url, events, chat, creator, since, created_at: Date.now() };
    await tx.insertWebhook({ ...webhook, secret: vault.seal(secret, secretBinding(id)) });
    await record("webhook_created", { ...actorOf(context), webhook: id });
    return { id, secret };
  });
  webhooks.wake();
  return result;
});

webhooks.read(operations.getWebhooks, async (tx, { caller }) => ({
  items: (await tx.webhooks()).map((webhook) => shownTo(caller, webhook)),
}));

webhooks.handle(operations.setWebhook, async (context, input) => {
  const { config, store, audit, webhooks, caller } = context;
  const { webhook_id: id, url, events, disabled } = input;
  if (url !== undefined) await checkUrlField(url, config.allowPrivateAddresses);
  const since = await store.changes.head();
  const changed = await audit.write(async (tx, record) => {
    const webhook = await webhookBy(tx, id);
    if (url !== undefined || events !== undefined) await checkReading(tx, webhook.chat, caller);
    // Its rights end with those of the creator, so no other operator may receive what it is sent.
    if (url !== undefined && caller.kind !== "service" && !isCreator(webhook, caller)) {
      throw forbidden("only its creator or a service key may change the address of a webhook");
    }
    if (disabled === false) await checkCreatorReading(tx, webhook, config);
    const isEnabled = disabled === false && webhook.disabled !== null;
    const fields: WebhookFields = {
      ...(url !== undefined && { url }),
      ...(events !== undefined && { events }),
      ...(disabled !== undefined && { disabled: disabled ? "manual" : null }),
      ...(isEnabled && { since }),
    };
    await change(tx, webhook, fields, isEnabled);
    await record("webhook_changed", { ...actorOf(context), webhook: id });
    return { ...webhook, ...fields };
  });
  webhooks.wake();
  return shownTo(caller, changed);
});

webhooks.handle(operations.deleteWebhook, async (context, { webhook_id: id }) => {
  const { audit, webhooks } = context;
  await audit.write(async (tx, record) => {
    if (!(await tx.deleteWebhook(id))) throw notFound("webhook");
    await record("webhook_deleted", { ...actorOf(context), webhook: id });
  });
  webhooks.wake();
});

webhooks.read(operations.getDeliveries, async (tx, { config }, { status, ...input }) => {
  const { after: before, limit, of } = deliveryPages(input, config);
  const { id: webhookId } = await webhookBy(tx, input.webhook_id);
  return of((await tx.deliveries({ webhookId, status, before, limit })).map(shownDelivery));
});

webhooks.handle(operations.replayDelivery, async (context, { delivery_id }) => {
  const { audit, config, webhooks } = context;
  await audit.write(async (tx, record) => {
    const delivery = await tx.delivery(delivery_id);
    const webhook = delivery && (await tx.webhook(delivery.webhook_id));
    // Deliveries of deleted webhooks are deleted a little later.
    if (!webhook) throw notFound("delivery");
    if (delivery.status === "pending") throw conflict("the delivery has not ended");
    await checkCreatorReading(tx, webhook, config);
    await tx.requeueDelivery(delivery, Date.now());
    await record("webhook_replayed", { ...actorOf(context), webhook: webhook.id });
  });
  webhooks.wake();
});

/** Changes a webhook. What waits is sent at once if it is enabled or has another address. */
async function change(
  tx: WriteTx,
  { id, url }: WebhookRecord,
  fields: WebhookFields,
  isEnabled = false,
): Promise<void> {
  const isMoved = fields.url !== undefined && fields.url !== url;
  if (isEnabled || isMoved) await tx.resumeLanes(id, CLAIM_MS, Date.now());
  await tx.setWebhook(id, fields);
}

async function webhookBy(tx: ReadTx, id: string): Promise<WebhookRecord> {
  const webhook = await tx.webhook(id);
  if (!webhook) throw notFound("webhook");
  return webhook;
}

/**
 * Throws unless the caller may read what the webhook is sent. A service key may read everything; an
 * operator only conversations of their own.
 */
async function checkReading(tx: ReadTx, chat: string | null, caller: AnyCaller): Promise<void> {
  if (caller.kind !== "service") {
    if (chat === null)
      throw forbidden("only a service key may receive events of all conversations");
    await joinedConversation(tx, chat, caller);
  } else if (chat !== null && !(await tx.conversation(chat, NOBODY))) {
    throw notFound("conversation");
  }
}

/** All service keys count as the creator of what one of them has created. */
const isCreator = ({ creator }: WebhookRecord, caller: AnyCaller) => usernameOf(caller) === creator;

const usernameOf = (caller: AnyCaller) =>
  caller.kind === "service" ? null : caller.account.username;

async function checkCreatorReading(tx: ReadTx, webhook: WebhookRecord, config: Config) {
  if (await mayCreatorRead(tx, webhook, config.operators)) return;
  throw conflict("the creator of the webhook may not read its conversation any more");
}

/** Receivers often have secrets in their addresses: others than the creator see the origin alone. */
const shownTo = (caller: AnyCaller, webhook: WebhookRecord): Webhook => ({
  id: webhook.id,
  name: webhook.name,
  url: isCreator(webhook, caller) ? webhook.url : new URL(webhook.url).origin,
  events: [...webhook.events],
  chat_id: webhook.chat,
  created_by: webhook.creator,
  disabled: webhook.disabled,
  created_at: iso(webhook.created_at),
});

const shownDelivery = (delivery: DeliveryRecord): WebhookDelivery => ({
  id: delivery.id,
  message_id: delivery.message_id,
  event: delivery.event,
  chat_id: delivery.lane.startsWith("account ") ? null : delivery.lane,
  status: delivery.status,
  created_at: iso(delivery.created_at),
  attempts: delivery.attempts,
  latest_attempts: delivery.history.map((attempt) => ({ ...attempt, at: iso(attempt.at) })),
});
