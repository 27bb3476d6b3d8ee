import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { record } from "./record.ts";

export const AgentToken = record("AgentToken", {
  id: uuid,
  agent_username: z.string(),
  name: z.string().meta({ description: "What its owner calls it; may be empty." }),
  created_at: timestamp,
  last_used_at: timestamp.nullable().meta({
    description: "When a program last used it, to the minute; null if none has.",
  }),
});
export type AgentToken = z.infer<typeof AgentToken>;
