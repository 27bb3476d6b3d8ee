import { z } from "zod";
import { timestamp } from "../text/fields.ts";
import { record } from "./record.ts";

export const ManagedAccount = record("ManagedAccount", {
  username: z.string(),
  display_name: z.string(),
  external_id: z
    .string()
    .nullable()
    .meta({ description: "The id in the product that created the account." }),
  metadata: z
    .record(z.string(), z.string())
    .meta({ description: "What the product stores with the account." }),
  created_at: timestamp,
  last_active_at: timestamp
    .nullable()
    .meta({ description: "When a session of the account was last used." }),
  suspended_at: timestamp.nullable().meta({ description: "Since when it is suspended." }),
  is_operator: z.boolean(),
});
export type ManagedAccount = z.infer<typeof ManagedAccount>;

export const Statistics = record("Statistics", {
  people: z.int().meta({ description: "Accounts of people, suspended ones included." }),
  suspended: z.int().meta({ description: "Suspended accounts." }),
  active_day: z.int().meta({ description: "People who used a session in the last 24 hours." }),
  active_month: z.int().meta({ description: "People who used a session in the last 30 days." }),
  conversations: z.int(),
  messages: z.int().meta({
    description: "About how many messages were ever sent, deleted ones included.",
  }),
  open_turns: z.int().meta({ description: "Turns of agents that wait or run." }),
  version: z.string().meta({ description: "The version of the node that answered." }),
});
export type Statistics = z.infer<typeof Statistics>;

const detail = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const AuditEntry = record("AuditEntry", {
  id: z.int(),
  at: timestamp,
  action: z.string().meta({ description: "What happened, such as `sign_in_failed`." }),
  account: z
    .string()
    .nullable()
    .meta({ description: "The username of the account that it concerns." }),
  operator: z.string().nullable().meta({ description: "The username of the operator who did it." }),
  service_key: z
    .string()
    .nullable()
    .meta({ description: "The name of the service key that the call was made with." }),
  address: z.string().nullable().meta({ description: "The client's network address." }),
  user_agent: z.string().nullable(),
  details: z
    .record(z.string(), detail)
    .meta({ description: "Further fields of the action. Never content, never secrets." }),
});
export type AuditEntry = z.infer<typeof AuditEntry>;
