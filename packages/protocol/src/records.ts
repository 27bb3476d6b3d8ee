import { z } from "zod";
import { timestamp, uuid } from "./text.ts";

const record = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.object(shape).meta({ id });

export const Account = record("Account", {
  username: z.string().meta({ description: "Agents use the form `<owner>:<provider>`." }),
  kind: z.enum(["human", "agent"]),
  display_name: z.string(),
  version: z.int().meta({
    description: "Of two records of one account the one with the higher version is the newer.",
  }),
});
export type Account = z.infer<typeof Account>;

export const ReactionSummary = record("ReactionSummary", {
  emoji: z.string(),
  count: z.int(),
  reacted: z.boolean().meta({ description: "Whether the caller did; false in broadcast events." }),
});
export type ReactionSummary = z.infer<typeof ReactionSummary>;

export const Reaction = record("Reaction", {
  message_id: uuid,
  reactor: Account,
  emoji: z.string(),
  created_at: timestamp,
});
export type Reaction = z.infer<typeof Reaction>;

export const turnErrorCodes = [
  "key_missing",
  "key_rejected",
  "provider_rate_limited",
  "provider_unavailable",
  "provider_refused",
  "context_too_long",
  "timeout",
  "interrupted",
  "budget_exceeded",
  "internal",
] as const;

export const Turn = record("Turn", {
  status: z.enum(["streaming", "complete", "stopped", "failed"]),
  triggered_by: uuid,
  model: z.string(),
  error: z.object({ code: z.enum(turnErrorCodes), message: z.string() }).nullable(),
  usage: z.object({ input_tokens: z.int(), output_tokens: z.int() }).nullable(),
});
export type Turn = z.infer<typeof Turn>;

export const ComponentUse = record("ComponentUse", {
  token: z.string().meta({ description: "The action of the button, or `form_submit:<id>`." }),
  by: Account,
  at: timestamp.meta({ description: "When they last used it." }),
});
export type ComponentUse = z.infer<typeof ComponentUse>;

export const ComponentAction = record("ComponentAction", {
  token: z.string().meta({ description: "The action that was sent." }),
  label: z
    .string()
    .nullable()
    .meta({ description: "What the button says; null for a form, or where no button has it." }),
  by: Account.meta({ description: "Who pressed or submitted. Their words stand in the content." }),
});
export type ComponentAction = z.infer<typeof ComponentAction>;

export const Message = record("Message", {
  id: uuid,
  conversation_id: uuid,
  seq: z.int().meta({ description: "The message's place in the conversation, for good." }),
  version: z.int().meta({ description: "The conversation's counter when it last changed." }),
  sender: Account,
  content: z.string().meta({ description: "Markdown with the component markup." }),
  client_msg_id: z.string().nullable(),
  reply_to_id: uuid.nullable(),
  created_at: timestamp,
  edited_at: timestamp.nullable(),
  finalized_at: timestamp
    .nullable()
    .meta({ description: "Null exactly while an agent's message is streaming." }),
  reactions: z.array(ReactionSummary),
  mentions: z.array(z.string()).meta({ description: "Usernames of the participants mentioned." }),
  turn: Turn.nullable().meta({ description: "Null for humans." }),
  action: ComponentAction.nullable().meta({
    description:
      "Set in the reply to a component action; `reply_to_id` is the component's message.",
  }),
  uses: z.array(ComponentUse).meta({
    description:
      "Who used which of the message's components, the latest last: each person and component once, at most 50. Empty while the message streams.",
  }),
});
export type Message = z.infer<typeof Message>;

const conversationShape = {
  id: uuid,
  kind: z.enum(["direct", "group"]),
  title: z.string().nullable(),
  participants: z.array(Account).meta({
    description: "All of them in getChat; at most 50 of a group in lists and events.",
  }),
  created_by: Account,
  admin: z.string().nullable().meta({ description: "Username of a group's admin." }),
  created_at: timestamp,
  updated_at: timestamp.meta({ description: "When a message or a change of the group last came." }),
  seq: z.int().meta({ description: "The change counter." }),
  last_message: Message.nullable(),
  participant_count: z.int(),
};

export const ConversationChange = record("ConversationChange", {
  seq: z.int().meta({
    description: "Its place among the messages. Changes that one call made share it.",
  }),
  at: timestamp,
  actor: Account.meta({ description: "Who made it." }),
  kind: z
    .enum(["added", "left", "removed", "renamed", "admin_changed", "mode_changed"])
    .meta({ description: "`mode_changed`: an agent was set to always on, or to mentions only." }),
  subjects: z.array(Account).meta({
    description:
      "Who was added, left or was removed, with their agents; the new admin; the agent. At most 50.",
  }),
  subject_count: z
    .int()
    .meta({ description: "How many there were, also where not all are listed." }),
  title: z.string().nullable().meta({ description: "The new title, where it was `renamed`." }),
  always_on: z.boolean().nullable().meta({ description: "The new mode, where it `mode_changed`." }),
});
export type ConversationChange = z.infer<typeof ConversationChange>;

/** A conversation as events carry it: without what is the caller's own. */
export const SharedConversation = record("SharedConversation", conversationShape);
export type SharedConversation = z.infer<typeof SharedConversation>;

export const ConversationUpdate = record("ConversationUpdate", {
  ...conversationShape,
  changes: z.array(ConversationChange).meta({ description: "What changed." }),
});
export type ConversationUpdate = z.infer<typeof ConversationUpdate>;

export const Conversation = record("Conversation", {
  ...conversationShape,
  unread_count: z.int(),
  unread: z.object({ human: z.int(), agent: z.int(), mentions: z.int() }),
  last_read_seq: z.int(),
  own_seq: z.int().meta({
    description: "The caller's own counter when the unread figures and `last_message` were read.",
  }),
});
export type Conversation = z.infer<typeof Conversation>;

export const ConversationDetail = record("ConversationDetail", {
  ...Conversation.shape,
  reads: z
    .record(z.string(), z.int())
    .meta({ description: "How far each human participant has read, by username." }),
});
export type ConversationDetail = z.infer<typeof ConversationDetail>;

export const Session = record("Session", {
  id: uuid,
  created_at: timestamp,
  last_used_at: timestamp,
  user_agent: z.string().nullable(),
  current: z.boolean(),
});
export type Session = z.infer<typeof Session>;

export const SignedIn = record("SignedIn", {
  access_token: z.string(),
  expires_at: timestamp,
  account: Account,
  device: z.string().meta({
    description:
      "Keep it, also after signing out, and send it with the next `signIn`: failed attempts of others then do not make this client wait.",
  }),
});
export type SignedIn = z.infer<typeof SignedIn>;

export const AgentSummary = record("AgentSummary", {
  provider: z.string(),
  username: z.string().meta({ description: "`<owner>:<provider>`." }),
  display_name: z.string(),
  version: Account.shape.version,
  key_configured: z.boolean(),
});
export type AgentSummary = z.infer<typeof AgentSummary>;

export const AgentLimits = record("AgentLimits", {
  spenders: z
    .enum(["owner", "participants"])
    .meta({ description: "Whose messages the agent answers at the owner's expense." }),
  daily_tokens: z.int().nullable(),
  chat_daily_tokens: z.int().nullable().meta({ description: "In each conversation." }),
  turns_per_minute: z.int().nullable(),
  waiting_turns: z.int().meta({
    description:
      "How many turns may wait in each conversation; a further trigger is folded into the last of them.",
  }),
});
export type AgentLimits = z.infer<typeof AgentLimits>;

/** An agent as its owner sees it. */
export const AgentProfile = record("AgentProfile", {
  ...AgentSummary.shape,
  key_tail: z.string().nullable(),
  model: z.string(),
  instructions: z.string().nullable(),
  limits: AgentLimits,
});
export type AgentProfile = z.infer<typeof AgentProfile>;

export const KeyTest = record("KeyTest", {
  works: z.boolean(),
  error: Turn.shape.error.meta({ description: "Why the key does not work." }),
  model: z.string().meta({ description: "The model that was asked: the agent's own." }),
  sandbox: z.boolean().meta({
    description: "True for a sandbox key: the built-in model answers it, not the provider's.",
  }),
});
export type KeyTest = z.infer<typeof KeyTest>;

export const GroupAgent = record("GroupAgent", { agent: Account, always_on: z.boolean() });
export type GroupAgent = z.infer<typeof GroupAgent>;

const Usage = z.object({ input_tokens: z.int(), output_tokens: z.int() });

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
  tries: z.int(),
  started_at: timestamp,
  finished_at: timestamp.nullable(),
  first_token_ms: z.int().nullable(),
  duration_ms: z.int().nullable(),
  usage: Usage.nullable().meta({ description: "Only for the agent's owner." }),
});
export type TurnReceipt = z.infer<typeof TurnReceipt>;

export const UsageRow = record("UsageRow", {
  agent: z.string(),
  conversation_id: uuid,
  day: z.string().meta({ description: "In UTC, such as 2026-11-15." }),
  turns: z.int(),
  failures: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
});
export type UsageRow = z.infer<typeof UsageRow>;
