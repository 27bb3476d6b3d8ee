import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { ComponentAction, ComponentUse } from "./components.ts";
import { File } from "./files.ts";
import { ReactionSummary } from "./reactions.ts";
import { record } from "./record.ts";
import { ToolCall } from "./tool-calls.ts";
import { Turn } from "./turns.ts";

export const Message = record("Message", {
  id: uuid,
  conversation_id: uuid,
  seq: z.int().meta({
    description:
      "The conversation's counter when the message was created: its permanent place in the order.",
  }),
  version: z
    .int()
    .meta({ description: "The conversation's counter when the message last changed." }),
  sender: Account,
  content: z.string().meta({ description: "Markdown with the component markup." }),
  excerpt: z.literal(true).optional().meta({
    description:
      "Present if `content` is only the beginning of the text, as in the `last_message` of a conversation whose text is longer than 2,000 characters. `getMessage` returns all of it.",
  }),
  client_msg_id: z.string().nullable(),
  reply_to_id: uuid.nullable(),
  created_at: timestamp,
  edited_at: timestamp.nullable(),
  finalized_at: timestamp
    .nullable()
    .meta({ description: "Null exactly while an agent's message is streaming." }),
  reactions: z.array(ReactionSummary),
  mentions: z.array(z.string()).meta({ description: "Usernames of the participants mentioned." }),
  turn: Turn.nullable().meta({ description: "The agent's turn; null for a person's message." }),
  action: ComponentAction.nullable().meta({
    description:
      "The component action that this message replies to; null for all other messages. `reply_to_id` is then the message with the component.",
  }),
  uses: z.array(ComponentUse).meta({
    description:
      "Who used which components of the message, latest last: one entry per person and component, at most 50. Empty while the message is streaming.",
  }),
  files: z.array(File).meta({ description: "At most 10; empty for most messages." }),
  tool_calls: z.array(ToolCall).meta({
    description:
      "The tools that the agent called while it wrote the message, in order. `getToolCalls` has their arguments and results.",
  }),
  metadata: z.record(z.string(), z.unknown()).optional().meta({
    description:
      "What the backend of a product has stored with the message; left out for most messages.",
  }),
  imported: z.literal(true).optional().meta({
    description:
      "Present if `importMessages` stored the message: it counts as read for everybody, and nobody is notified of it.",
  }),
});
export type Message = z.infer<typeof Message>;
