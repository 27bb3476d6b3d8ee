import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { Message } from "./messages.ts";
import { record } from "./record.ts";

export const Report = record("Report", {
  id: uuid,
  at: timestamp.meta({ description: "When the message was reported." }),
  reporter: Account,
  reason: z.string(),
  message: Message.meta({
    description:
      "The message as it was when it was reported, also if it was edited or deleted since.",
  }),
  around: z.array(Message).meta({
    description:
      "Up to five messages around it at that time, oldest first, as they are now. Those deleted since are left out.",
  }),
  conversation_id: uuid,
  resolved_at: timestamp.nullable().meta({ description: "Null while the report is open." }),
  resolved_by: z.string().nullable().meta({
    description:
      "The username of the operator who resolved it, or `service:` and the name of the service key.",
  }),
  note: z.string().nullable().meta({ description: "What the operator noted when resolving it." }),
});
export type Report = z.infer<typeof Report>;
