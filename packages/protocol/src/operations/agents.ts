import { z } from "zod";
import { operation } from "../operation.ts";
import { AgentLimits, AgentProfile, KeyTest, TurnReceipt, UsageRow } from "../records.ts";
import { anyText, displayName, line, text, timestamp, uuid } from "../text.ts";

const provider = text(1, 32).meta({ description: "The agent provider, such as `claude`." });
const apiKey = anyText
  .transform((key) => key.trim())
  .pipe(
    z
      .string()
      .min(1, "must not be empty")
      .max(1024, "must have at most 1024 characters")
      .regex(/^[\x21-\x7e]*$/, "must be one line of printable ASCII characters"),
  )
  .meta({ minLength: 1, maxLength: 1024 });
const message = z.object({ message_id: uuid });
const tokenLimit = z.int().min(0).nullable().optional();

export const getMyAgents = operation({
  name: "getMyAgents",
  socket: "agents.list",
  summary: "Lists the caller's agents.",
  output: z.object({ items: z.array(AgentProfile) }),
});

export const setAgentKey = operation({
  name: "setAgentKey",
  socket: "agents.set_key",
  summary: "Stores or replaces the caller's key for a provider; it is never shown again.",
  input: z.object({ provider, api_key: apiKey }),
  output: z.object({
    provider: z.string(),
    key_tail: z.string().meta({ description: "A mask and the key's last four characters." }),
  }),
});

export const removeAgentKey = operation({
  name: "removeAgentKey",
  socket: "agents.remove_key",
  summary: "Forgets the caller's key for a provider.",
  input: z.object({ provider }),
});

export const testAgentKey = operation({
  name: "testAgentKey",
  socket: "agents.test_key",
  summary:
    "Makes one small call to the provider, with the stored key or with one that is not stored yet.",
  input: z.object({
    provider,
    api_key: apiKey.optional().meta({ description: "Default the stored key. It is not stored." }),
  }),
  output: KeyTest,
  errors: ["not_found"],
});

export const setAgentProfile = operation({
  name: "setAgentProfile",
  socket: "agents.set_profile",
  summary: "Changes an agent's name, model or instructions; null returns to the default.",
  input: z.object({
    provider,
    display_name: displayName.optional(),
    model: line(1, 128).nullable().optional(),
    instructions: text(0, 8000).nullable().optional(),
  }),
  output: AgentProfile,
});

export const setAgentLimits = operation({
  name: "setAgentLimits",
  socket: "agents.set_limits",
  summary:
    "Decides who may spend the key and how much; null lifts a limit, all but `waiting_turns`.",
  input: z.object({
    provider,
    spenders: z.enum(["owner", "participants"]).optional(),
    daily_tokens: tokenLimit,
    chat_daily_tokens: tokenLimit,
    turns_per_minute: tokenLimit,
    waiting_turns: z.int().min(1).max(100).optional(),
  }),
  output: AgentLimits,
});

export const getAgentUsage = operation({
  name: "getAgentUsage",
  socket: "agents.usage",
  summary: "Returns turns, tokens and failures of the caller's agents by conversation and day.",
  input: z.object({ since: timestamp.optional(), until: timestamp.optional() }).check((context) => {
    for (const field of ["since", "until"] as const) {
      const value = context.value[field];
      if (value !== undefined && Number.isNaN(Date.parse(value))) {
        const message = "must be an ISO 8601 timestamp";
        context.issues.push({ code: "custom", message, path: [field], input: value });
      }
    }
  }),
  output: z.object({ items: z.array(UsageRow) }),
});

export const stopAgentTurn = operation({
  name: "stopAgentTurn",
  socket: "agents.stop",
  summary: "Ends a streaming reply; the message keeps what it has.",
  input: message,
  errors: ["forbidden", "not_found", "conflict"],
});

export const retryAgentTurn = operation({
  name: "retryAgentTurn",
  socket: "agents.retry",
  summary: "Has an agent answer the same message once more, in a new message.",
  input: message,
  errors: ["forbidden", "not_found", "conflict"],
});

export const getTurn = operation({
  name: "getTurn",
  socket: "agents.turn",
  summary: "Returns the receipt of an agent's reply.",
  input: message,
  output: TurnReceipt,
  errors: ["forbidden", "not_found"],
});
