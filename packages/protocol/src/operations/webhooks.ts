import { z } from "zod";
import { type EventName, events } from "../events.ts";
import { cursor, limit, operation, page } from "../operation.ts";
import { deliveryStatuses, Webhook, WebhookDelivery } from "../records.ts";
import { line, text, uuid } from "../text/fields.ts";

const names = Object.keys(events) as EventName[];
/** The events that webhooks can receive: those that are stored, and concern more than one's own clients. */
export const webhookEvents = names.filter(
  (name) => events[name].delivery !== "transient" && !events[name].isOwn,
);

const url = text(1, 2048).meta({
  description:
    "An https address. Private addresses, and http, need the setting `PARLEY_PRIVATE_ADDRESSES=allow`.",
  examples: ["https://shop.example.com/parley"],
});
const eventNames = z
  .array(
    z
      .string()
      .refine((name) => (webhookEvents as string[]).includes(name), {
        message: "must be the name of a stored event, such as events.messageNew",
      })
      .meta({ examples: ["events.messageNew"] }),
  )
  .max(50)
  .meta({ description: "Names of events. An empty list stands for all." });
const webhook_id = uuid;

export const createWebhook = operation({
  name: "createWebhook",
  socket: "webhooks.create",
  sensitive: true,
  summary:
    "Creates a webhook: an address that is sent events. The secret, which signs them, is not shown again, except to a repeated call with the same `name`.",
  access: "operator",
  input: z.object({
    name: line(1, 64).optional().meta({
      description:
        "A name that makes the call idempotent: a webhook of the same creator with this name is changed and returned, and none is created. All service keys count as one creator.",
    }),
    url,
    events: eventNames,
    chat_id: uuid.optional().meta({
      description:
        "Sends only events of this conversation. An operator must take part in it; only a service key can leave it out.",
    }),
  }),
  output: z.object({
    id: uuid,
    secret: z.string().meta({ description: "`whsec_` and the key in base64." }),
  }),
  errors: ["not_found", "conflict"],
});

export const getWebhooks = operation({
  name: "getWebhooks",
  socket: "webhooks.list",
  summary: "Lists all webhooks, oldest first.",
  access: "operator",
  output: z.object({ items: z.array(Webhook) }),
});

export const setWebhook = operation({
  name: "setWebhook",
  socket: "webhooks.set",
  sensitive: true,
  summary:
    "Changes a webhook. What is left out stays as it is. Only its creator or a service key may change the address.",
  access: "operator",
  input: z.object({
    webhook_id,
    url: url.optional(),
    events: eventNames.optional(),
    disabled: z.boolean().optional().meta({
      description:
        "A disabled webhook is sent nothing, and misses what happens meanwhile. Deliveries that are pending wait.",
    }),
  }),
  output: Webhook,
  errors: ["not_found", "conflict"],
});

export const deleteWebhook = operation({
  name: "deleteWebhook",
  socket: "webhooks.delete",
  summary: "Deletes a webhook with its deliveries.",
  access: "operator",
  input: z.object({ webhook_id }),
  errors: ["not_found"],
});

export const getDeliveries = operation({
  name: "getDeliveries",
  socket: "webhooks.deliveries",
  summary:
    "Lists the deliveries of a webhook, newest first: those pending, and the latest ended ones.",
  access: "operator",
  input: z.object({
    webhook_id,
    status: z.enum(deliveryStatuses).optional().meta({ description: "Lists only these." }),
    cursor,
    limit,
  }),
  output: page(WebhookDelivery),
  errors: ["not_found"],
});

export const replayDelivery = operation({
  name: "replayDelivery",
  socket: "webhooks.replay",
  summary: "Sends an ended delivery again, with the same `webhook-id`.",
  access: "operator",
  input: z.object({ delivery_id: z.int().min(1) }),
  errors: ["not_found", "conflict"],
});
