import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { record } from "./record.ts";

export const toolCallStatuses = [
  "pending",
  "running",
  "done",
  "failed",
  "rejected",
  "expired",
] as const;

export const ToolCall = record("ToolCall", {
  id: uuid,
  server: z
    .string()
    .meta({ description: "The name of the tool server; `parley` for the built-in tools." }),
  tool: z.string(),
  title: z.string().meta({ description: "The tool's name for people, as its server gives it." }),
  status: z.enum(toolCallStatuses).meta({
    description:
      "`pending`: it waits for the agent's owner. `running`: it was approved or needs no approval. `rejected`: the owner rejected it, or the agent has left the conversation. `expired`: nobody decided within 24 hours.",
  }),
  decided_by: z
    .string()
    .nullable()
    .meta({ description: "The username of the owner who decided; null if nobody has." }),
});
export type ToolCall = z.infer<typeof ToolCall>;

export const ToolCallDetail = record("ToolCallDetail", {
  ...ToolCall.shape,
  arguments: z
    .record(z.string(), z.unknown())
    .meta({ description: "What the tool is called with. An approval covers exactly this." }),
  result: z
    .string()
    .nullable()
    .meta({ description: "What the tool returned. Null for everybody but the agent's owner." }),
  error: z.string().nullable().meta({
    description:
      "Why the call failed; `interrupted` if it is not known whether it was carried out. Null for everybody but the agent's owner.",
  }),
  note: z.string().nullable().meta({ description: "What the owner added to the decision." }),
  created_at: timestamp,
  decided_at: timestamp.nullable(),
  started_at: timestamp.nullable(),
  finished_at: timestamp.nullable(),
  expires_at: timestamp.nullable().meta({ description: "When a pending call expires." }),
});
export type ToolCallDetail = z.infer<typeof ToolCallDetail>;

export const PendingToolCall = record("PendingToolCall", {
  call: ToolCallDetail,
  message_id: uuid,
  conversation_id: uuid,
  agent: Account,
});
export type PendingToolCall = z.infer<typeof PendingToolCall>;

export const PendingQuestion = record("PendingQuestion", {
  message_id: uuid.meta({ description: "The message with the form." }),
  call_id: uuid.meta({ description: "The tool call that waits for the answer." }),
  conversation_id: uuid,
  agent: Account,
  created_at: timestamp,
  expires_at: timestamp.meta({ description: "The tool waits for an answer until then." }),
});
export type PendingQuestion = z.infer<typeof PendingQuestion>;
