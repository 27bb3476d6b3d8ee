import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { record } from "./record.ts";

export const Webhook = record("Webhook", {
  id: uuid,
  name: z.string().nullable().meta({ description: "As given to `createWebhook`; null: none." }),
  url: z.string().meta({
    description:
      "The whole address for its creator, for others its origin. All service keys count as the creator of what one of them has created.",
  }),
  events: z
    .array(z.string())
    .meta({ description: "The events that it receives. An empty list stands for all." }),
  chat_id: uuid
    .nullable()
    .meta({ description: "The only conversation whose events it receives; null: all." }),
  created_by: z.string().nullable().meta({
    description: "The username of the operator who created it; null: a service key.",
  }),
  disabled: z.enum(["manual", "gone", "creator"]).nullable().meta({
    description:
      "`manual`: by `setWebhook`. `gone`: its receiver has answered 410. `creator`: the operator who created it has left the conversation, is no operator any more, or is suspended or deleted. Null: it works.",
  }),
  created_at: timestamp,
});
export type Webhook = z.infer<typeof Webhook>;

export const deliveryStatuses = ["pending", "delivered", "failed", "skipped"] as const;

export const WebhookDelivery = record("WebhookDelivery", {
  id: z.int(),
  message_id: z
    .string()
    .meta({ description: "The header `webhook-id`, the same for every attempt." }),
  event: z.string(),
  chat_id: uuid.nullable(),
  status: z.enum(deliveryStatuses).meta({
    description:
      "`failed`: without success for three days. `skipped`: its message was deleted before it was sent.",
  }),
  created_at: timestamp,
  attempts: z.int(),
  latest_attempts: z
    .array(
      z.object({
        at: timestamp,
        duration_ms: z.int(),
        status: z.int().nullable().meta({ description: "The status of the response." }),
        error: z.string().nullable().meta({ description: "Why the attempt failed." }),
      }),
    )
    .meta({ description: "At most 20, oldest first." }),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;
