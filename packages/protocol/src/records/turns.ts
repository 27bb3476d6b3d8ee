import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { record } from "./record.ts";
import { ToolCall } from "./tool-calls.ts";
import { TurnError } from "./turn-errors.ts";

const Usage = z.object({ input_tokens: z.int(), output_tokens: z.int() });

export const Turn = record("Turn", {
  status: z
    .enum(["streaming", "complete", "stopped", "failed"])
    .meta({ description: "`streaming` until the turn has ended." }),
  triggered_by: uuid,
  model: z.string(),
  error: TurnError.nullable().meta({
    description: "Why the turn failed; null if it did not.",
  }),
  usage: Usage.nullable(),
  continues: uuid.optional().meta({
    description:
      "The message of the agent that this one continues: the calls that waited there were decided, or its turn was interrupted.",
  }),
});
export type Turn = z.infer<typeof Turn>;

export const TurnReceipt = record("TurnReceipt", {
  message_id: uuid,
  conversation_id: uuid,
  agent: Account,
  triggered_by: uuid,
  model: z.string(),
  status: Turn.shape.status,
  error: Turn.shape.error,
  context_ids: z
    .array(uuid)
    .meta({ description: "The messages that were sent to the model, oldest first." }),
  tries: z.int().meta({ description: "How often the provider was called." }),
  started_at: timestamp.meta({ description: "When the turn began." }),
  finished_at: timestamp.nullable().meta({ description: "When it ended; null until then." }),
  first_token_ms: z
    .int()
    .nullable()
    .meta({ description: "Milliseconds from the start to the first text." }),
  duration_ms: z.int().nullable().meta({ description: "Milliseconds from the start to the end." }),
  usage: Usage.nullable().meta({ description: "Tokens used. Null for everybody but the owner." }),
  rounds: z
    .array(
      z.object({
        duration_ms: z.int().meta({ description: "How long the model took." }),
        usage: Usage.nullable().meta({ description: "Null for everybody but the owner." }),
        calls: z.array(
          z.object({
            ...ToolCall.shape,
            duration_ms: z.int().nullable().meta({ description: "How long the tool took." }),
          }),
        ),
      }),
    )
    .meta({
      description:
        "The calls of the model, oldest first, with the tools that each one asked for. Empty for turns of external agents.",
    }),
});
export type TurnReceipt = z.infer<typeof TurnReceipt>;
