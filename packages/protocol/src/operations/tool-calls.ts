import { z } from "zod";
import { operation } from "../operation.ts";
import { PendingQuestion, PendingToolCall, ToolCallDetail } from "../records.ts";
import { text, uuid } from "../text/fields.ts";

export const getToolCalls = operation({
  name: "getToolCalls",
  socket: "tools.calls",
  summary:
    "Returns the tool calls of a message with their arguments, and for the agent's owner their results.",
  input: z.object({ message_id: uuid }),
  output: z.object({ items: z.array(ToolCallDetail) }),
  errors: ["forbidden", "not_found"],
});

export const getPendingToolCalls = operation({
  name: "getPendingToolCalls",
  socket: "tools.pending",
  summary:
    "Lists the tool calls that wait for the caller's decision and what tools ask the caller, oldest first.",
  output: z.object({
    items: z.array(PendingToolCall),
    questions: z.array(PendingQuestion),
    has_more: z.literal(true).optional().meta({
      description:
        "More calls wait than are listed: at most `page_size`, in at most `page_bytes`. They are listed once these are decided.",
    }),
  }),
});

export const decideToolCall = operation({
  name: "decideToolCall",
  socket: "tools.decide",
  summary:
    "Approves or rejects a tool call of one of the caller's agents. Once all calls of the message are decided, the agent continues in a new message.",
  input: z.object({
    call_id: uuid,
    decision: z.enum(["approve", "reject"]),
    note: text(0, 1000)
      .optional()
      .meta({ description: "Shown with the call; the agent reads it." }),
  }),
  output: ToolCallDetail,
  errors: ["forbidden", "not_found", "conflict"],
});
