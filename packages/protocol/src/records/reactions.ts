import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { record } from "./record.ts";

export const ReactionSummary = record("ReactionSummary", {
  emoji: z.string(),
  count: z.int().meta({ description: "How many accounts reacted with it." }),
  reacted: z
    .boolean()
    .meta({ description: "Whether the caller reacted with it; always false in events." }),
});
export type ReactionSummary = z.infer<typeof ReactionSummary>;

export const Reaction = record("Reaction", {
  message_id: uuid,
  reactor: Account,
  emoji: z.string(),
  created_at: timestamp,
});
export type Reaction = z.infer<typeof Reaction>;
