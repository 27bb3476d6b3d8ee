import { z } from "zod";
import { uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { record } from "./record.ts";
import { ToolGrant } from "./tools.ts";
import { Turn } from "./turns.ts";

export const AgentSummary = record("AgentSummary", {
  kind: z.enum(["model", "external"]).meta({
    description: "`model`: a provider's model answers. `external`: a program of the owner answers.",
  }),
  name: z.string().meta({
    description:
      "The part of the username after the colon. Default agents are named after their provider.",
  }),
  provider: z
    .string()
    .nullable()
    .meta({ description: "The identifier of the provider; null for an external agent." }),
  username: z.string().meta({ description: "`<owner>:<name>`." }),
  display_name: z.string(),
  version: Account.shape.version,
  key_configured: z.boolean(),
});
export type AgentSummary = z.infer<typeof AgentSummary>;

export const AgentLimits = record("AgentLimits", {
  spenders: z
    .enum(["owner", "participants"])
    .meta({ description: "Whose messages the agent answers: the owner's only, or everybody's." }),
  daily_tokens: z
    .int()
    .nullable()
    .meta({ description: "Tokens the agent may use per day (UTC) in total; null: no limit." }),
  chat_daily_tokens: z
    .int()
    .nullable()
    .meta({ description: "Tokens it may use per day (UTC) in each conversation; null: no limit." }),
  turns_per_minute: z
    .int()
    .nullable()
    .meta({ description: "Turns it may begin per minute; null: no limit." }),
  waiting_turns: z.int().meta({
    description:
      "How many turns may wait in each conversation; the last of them also answers the messages that come after it.",
  }),
});
export type AgentLimits = z.infer<typeof AgentLimits>;

/** An agent as its owner sees it. */
export const AgentProfile = record("AgentProfile", {
  ...AgentSummary.shape,
  key_tail: z.string().nullable(),
  key_source: z.enum(["own", "operator"]).nullable().meta({
    description:
      "Whose key the agent uses: the owner's, or the operator's if the owner has stored none. Null: it has no key.",
  }),
  model: z.string().meta({
    description:
      "The model that is asked. With the operator's key, it is the operator's choice. Of an external agent, what its owner calls it, or empty.",
  }),
  instructions: z
    .string()
    .nullable()
    .meta({ description: "What the model is told in addition; null if nothing." }),
  limits: AgentLimits,
  online: z.boolean().nullable().meta({
    description:
      "Whether a program is connected that answers for an external agent; null for a model.",
  }),
  tools: z.array(ToolGrant).meta({ description: "The tools that the agent may use." }),
});
export type AgentProfile = z.infer<typeof AgentProfile>;

export const AgentModel = record("AgentModel", {
  id: z.string().meta({ description: "What `model` of an agent is set to." }),
  display_name: z.string(),
});
export type AgentModel = z.infer<typeof AgentModel>;

export const KeyTest = record("KeyTest", {
  works: z.boolean().meta({ description: "Whether the key was accepted." }),
  error: Turn.shape.error.meta({ description: "Why the key does not work; null if it works." }),
  model: z.string().meta({ description: "The agent's model, which the provider was asked for." }),
  sandbox: z.boolean().meta({
    description: "True for a sandbox key: the built-in model answered, not the provider.",
  }),
});
export type KeyTest = z.infer<typeof KeyTest>;

export const UsageRow = record("UsageRow", {
  agent: z.string().meta({ description: "The agent's username." }),
  conversation_id: uuid,
  day: z.string().meta({ description: "The day in UTC, such as `2026-11-15`." }),
  turns: z.int().meta({ description: "Turns that ended, failed ones included." }),
  failures: z.int().meta({ description: "Turns that failed." }),
  input_tokens: z.int(),
  output_tokens: z.int(),
});
export type UsageRow = z.infer<typeof UsageRow>;
