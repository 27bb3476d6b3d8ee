import { z } from "zod";
import { timestamp, uuid } from "./text.ts";

const record = <Shape extends z.core.$ZodLooseShape>(id: string, shape: Shape) =>
  z.object(shape).meta({ id });

export const Account = record("Account", {
  username: z.string().meta({ description: "Agents use the form `<owner>:<name>`." }),
  kind: z
    .enum(["human", "agent"])
    .meta({ description: "A person, or an agent that belongs to a person." }),
  display_name: z.string(),
  version: z.int().meta({
    description: "Of two records of the same account, the one with the higher version is newer.",
  }),
  deleted: z.literal(true).optional().meta({
    description:
      "Present once the account is deleted. Nobody can write to it, and nobody else gets its username.",
  }),
});
export type Account = z.infer<typeof Account>;

/** Who may add a person to conversations. */
export const addedBy = z.enum(["everyone", "known"]);
export type AddedBy = z.infer<typeof addedBy>;

/** An account as its own person sees it. */
export const OwnAccount = record("OwnAccount", {
  ...Account.shape,
  added_by: addedBy.optional().meta({
    description:
      "Who may start conversations with the caller or add them to groups; left out for `everyone`.",
  }),
  is_operator: z
    .literal(true)
    .optional()
    .meta({ description: "True for an operator; left out for everybody else." }),
});

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
  "tool_limit",
  "agent_offline",
  "agent_failed",
  "internal",
] as const;

const Usage = z.object({ input_tokens: z.int(), output_tokens: z.int() });

export const Turn = record("Turn", {
  status: z
    .enum(["streaming", "complete", "stopped", "failed"])
    .meta({ description: "`streaming` until the turn has ended." }),
  triggered_by: uuid,
  model: z.string(),
  error: z
    .object({
      code: z.enum(turnErrorCodes),
      message: z.string().meta({ description: "A sentence for people." }),
    })
    .nullable()
    .meta({ description: "Why the turn failed; null if it did not." }),
  usage: Usage.nullable(),
  continues: uuid.optional().meta({
    description:
      "The message of the agent that this one continues: the calls that waited there were decided, or its turn was interrupted.",
  }),
});
export type Turn = z.infer<typeof Turn>;

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

export const ComponentUse = record("ComponentUse", {
  token: z.string().meta({ description: "The action of the button, or `form_submit:<id>`." }),
  by: Account,
  at: timestamp.meta({ description: "When the person last used it." }),
});
export type ComponentUse = z.infer<typeof ComponentUse>;

export const ComponentAction = record("ComponentAction", {
  token: z.string().meta({ description: "The action that was sent." }),
  label: z.string().nullable().meta({
    description:
      "The label of the button; null for a form, and for a token that no button of the message has.",
  }),
  by: Account.meta({ description: "Who pressed the button or submitted the form." }),
});
export type ComponentAction = z.infer<typeof ComponentAction>;

export const File = record("File", {
  id: uuid,
  name: z.string(),
  type: z.string().meta({
    description:
      "What the bytes are; until they have arrived, `application/octet-stream`. Never what the client claimed.",
  }),
  size: z.int().meta({ description: "In bytes. Pictures are stored again without metadata." }),
  width: z.int().nullable().meta({ description: "Of a picture, in pixels; otherwise null." }),
  height: z.int().nullable(),
  duration_ms: z.int().nullable().meta({
    description: "Of audio and video, where the file says it; otherwise null.",
  }),
  status: z.enum(["waiting", "ready", "failed"]).meta({
    description:
      "`waiting` until the bytes have arrived; `failed` if they were refused. Both can be sent again. `failed` in a message: the server has lost the bytes.",
  }),
  placeholder: z.string().nullable().meta({
    description: "A tiny blurred picture as a data URL, to show until the picture has loaded.",
  }),
});
export type File = z.infer<typeof File>;

export const FileLinks = record("FileLinks", {
  file_id: uuid,
  url: z.string().meta({
    description: "Absolute where the server knows its address, otherwise relative to it.",
  }),
  preview_url: z
    .string()
    .nullable()
    .meta({ description: "A small version of a picture, as WebP; null for other files." }),
  expires_at: timestamp,
});
export type FileLinks = z.infer<typeof FileLinks>;

export const Profile = record("Profile", {
  account: Account,
  picture_url: z.string().nullable().meta({
    description:
      "The account's picture, at most 512 pixels wide and high; null if it has none. An absolute address.",
  }),
  preview_url: z
    .string()
    .nullable()
    .meta({ description: "A small version of the picture for lists, as WebP." }),
  expires_at: timestamp.nullable().meta({
    description: "When the addresses end; null if there is no picture.",
  }),
});
export type Profile = z.infer<typeof Profile>;

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
  imported: z.literal(true).optional().meta({
    description:
      "Present if `importMessages` stored the message: it counts as read for everybody, and nobody is notified of it.",
  }),
});
export type Message = z.infer<typeof Message>;

const conversationShape = {
  id: uuid,
  kind: z.enum(["direct", "group"]).meta({
    description:
      "A direct conversation has two participants; with one's own agent there may be several, and they may have titles. A group may have any size.",
  }),
  title: z.string().nullable(),
  participants: z.array(Account).meta({
    description: "All of them in `getChat`; elsewhere at most 50 of a group.",
  }),
  created_by: Account,
  admin: z
    .string()
    .nullable()
    .meta({ description: "Username of the group's admin; null in a direct conversation." }),
  created_at: timestamp,
  updated_at: timestamp.meta({
    description:
      "When the latest message was sent or the group itself last changed. Imported messages do not set it back.",
  }),
  seq: z.int().meta({ description: "The conversation's change counter." }),
  last_message: Message.nullable(),
  participant_count: z.int(),
  picture_id: uuid.nullable().meta({
    description: "The file of a group's picture, for `getFileLinks`; null if there is none.",
  }),
};

export const ConversationChange = record("ConversationChange", {
  seq: z.int().meta({
    description: "Its place among the messages. All changes made by one call have the same.",
  }),
  at: timestamp.meta({ description: "When the change was made." }),
  actor: Account.meta({ description: "Who made the change." }),
  kind: z
    .enum([
      "added",
      "left",
      "removed",
      "renamed",
      "admin_changed",
      "mode_changed",
      "picture_changed",
    ])
    .meta({
      description:
        "`mode_changed`: an agent was set to always on or to mention-only. `picture_changed`: the group has a new picture, or none any more. Further kinds may follow: ignore those that you do not know.",
    }),
  subjects: z.array(Account).meta({
    description:
      "Who was added, left or was removed, agents included; the new admin; the agent whose mode changed. At most 50.",
  }),
  subject_count: z
    .int()
    .meta({ description: "The number of subjects, including those not listed." }),
  title: z.string().nullable().meta({ description: "The new title if `renamed`, otherwise null." }),
  always_on: z
    .boolean()
    .nullable()
    .meta({ description: "The new mode if `mode_changed`, otherwise null." }),
});
export type ConversationChange = z.infer<typeof ConversationChange>;

/** A conversation as events carry it: without the fields that differ from caller to caller. */
export const SharedConversation = record("SharedConversation", conversationShape);
export type SharedConversation = z.infer<typeof SharedConversation>;

export const ConversationUpdate = record("ConversationUpdate", {
  ...conversationShape,
  changes: z
    .array(ConversationChange)
    .meta({ description: "The changes that this event reports." }),
});
export type ConversationUpdate = z.infer<typeof ConversationUpdate>;

export const Conversation = record("Conversation", {
  ...conversationShape,
  unread_count: z.int(),
  unread: z.object({
    human: z.int().meta({ description: "Unread messages written by people." }),
    agent: z.int().meta({ description: "Unread messages written by agents." }),
    mentions: z.int().meta({ description: "Unread messages that mention the caller." }),
  }),
  last_read_seq: z.int(),
  own_seq: z.int().meta({
    description:
      "The caller's own counter when the unread figures and `last_message` were read. It goes up by one when the caller hides messages, blocks somebody or ends a block.",
  }),
});
export type Conversation = z.infer<typeof Conversation>;

export const ConversationDetail = record("ConversationDetail", {
  ...Conversation.shape,
  reads: z
    .record(z.string(), z.int())
    .meta({ description: "The `last_read_seq` of each person in the conversation, by username." }),
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
      "Keep it after signing out and send it with the next `signIn`: failed attempts by others then do not slow this client down.",
  }),
});
export type SignedIn = z.infer<typeof SignedIn>;

export const SecondFactor = record("SecondFactor", {
  available: z.boolean().meta({
    description:
      "Whether the account can have one: it needs a password. For accounts of an OIDC issuer or of a product, that service decides.",
  }),
  enabled: z.boolean().meta({ description: "Whether `signIn` asks for a code." }),
  enabled_at: timestamp.nullable(),
  recovery_codes_left: z.int().meta({ description: "Recovery codes that are not used." }),
});
export type SecondFactor = z.infer<typeof SecondFactor>;

export const BlockList = record("BlockList", {
  usernames: z
    .array(z.string())
    .meta({ description: "Everybody whom the caller blocked, ordered by username." }),
  own_seq: z.int().meta({
    description: "The caller's own counter. Of two lists, the one with the higher value is newer.",
  }),
});
export type BlockList = z.infer<typeof BlockList>;

export const ManagedAccount = record("ManagedAccount", {
  username: z.string(),
  display_name: z.string(),
  external_id: z
    .string()
    .nullable()
    .meta({ description: "The id in the product that created the account." }),
  metadata: z
    .record(z.string(), z.string())
    .meta({ description: "What the product stores with the account." }),
  created_at: timestamp,
  last_active_at: timestamp
    .nullable()
    .meta({ description: "When a session of the account was last used." }),
  suspended_at: timestamp.nullable().meta({ description: "Since when it is suspended." }),
  is_operator: z.boolean(),
});
export type ManagedAccount = z.infer<typeof ManagedAccount>;

export const Statistics = record("Statistics", {
  people: z.int().meta({ description: "Accounts of people, suspended ones included." }),
  suspended: z.int().meta({ description: "Suspended accounts." }),
  active_day: z.int().meta({ description: "People who used a session in the last 24 hours." }),
  active_month: z.int().meta({ description: "People who used a session in the last 30 days." }),
  conversations: z.int(),
  messages: z.int().meta({
    description: "About how many messages were ever sent, deleted ones included.",
  }),
  open_turns: z.int().meta({ description: "Turns of agents that wait or run." }),
  version: z.string().meta({ description: "The version of the node that answered." }),
});
export type Statistics = z.infer<typeof Statistics>;

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

const detail = z.union([z.string(), z.number(), z.boolean(), z.null()]);

export const AuditEntry = record("AuditEntry", {
  id: z.int(),
  at: timestamp,
  action: z.string().meta({ description: "What happened, such as `sign_in_failed`." }),
  account: z
    .string()
    .nullable()
    .meta({ description: "The username of the account that it concerns." }),
  operator: z.string().nullable().meta({ description: "The username of the operator who did it." }),
  service_key: z
    .string()
    .nullable()
    .meta({ description: "The name of the service key that the call was made with." }),
  address: z.string().nullable().meta({ description: "The client's network address." }),
  user_agent: z.string().nullable(),
  details: z
    .record(z.string(), detail)
    .meta({ description: "Further fields of the action. Never content, never secrets." }),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

export const Webhook = record("Webhook", {
  id: uuid,
  url: z.string(),
  events: z
    .array(z.string())
    .meta({ description: "The events that it receives. An empty list stands for all." }),
  chat_id: uuid
    .nullable()
    .meta({ description: "The only conversation whose events it receives; null: all." }),
  created_by: z.string().nullable().meta({
    description: "The username of the operator who created it; null: a service key.",
  }),
  disabled: z.enum(["manual", "gone", "creator"]).nullable().meta({
    description:
      "`manual`: by `setWebhook`. `gone`: its receiver has answered 410. `creator`: the operator who created it has left the conversation, is no operator any more, or is suspended or deleted. Null: it works.",
  }),
  created_at: timestamp,
});
export type Webhook = z.infer<typeof Webhook>;

export const deliveryStatuses = ["pending", "delivered", "failed", "skipped"] as const;

export const WebhookDelivery = record("WebhookDelivery", {
  id: z.int(),
  message_id: z
    .string()
    .meta({ description: "The header `webhook-id`, the same for every attempt." }),
  event: z.string(),
  chat_id: uuid.nullable(),
  status: z.enum(deliveryStatuses).meta({
    description:
      "`failed`: without success for three days. `skipped`: its message was deleted before it was sent.",
  }),
  created_at: timestamp,
  attempts: z.int(),
  latest_attempts: z
    .array(
      z.object({
        at: timestamp,
        duration_ms: z.int(),
        status: z.int().nullable().meta({ description: "The status of the response." }),
        error: z.string().nullable().meta({ description: "Why the attempt failed." }),
      }),
    )
    .meta({ description: "At most 20, oldest first." }),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

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

export const TurnRequest = record("TurnRequest", {
  turn_id: z.int(),
  conversation_id: uuid,
  message_id: uuid.meta({ description: "The message to answer." }),
  context: z.array(Message).meta({
    description:
      "The conversation up to the message to answer, or a little beyond it, oldest first, as the agent's owner sees it. At most 100 messages.",
  }),
});
export type TurnRequest = z.infer<typeof TurnRequest>;

export const ClaimedTurn = record("ClaimedTurn", {
  ...TurnRequest.shape,
  answer_id: uuid.meta({ description: "The message that the answer is written to." }),
});
export type ClaimedTurn = z.infer<typeof ClaimedTurn>;

export const IncomingHook = record("IncomingHook", {
  id: uuid,
  name: z.string(),
  chat_id: uuid,
  creator: z.string().meta({ description: "The username of the person who created it." }),
  account: z.string().meta({ description: "The username that it posts as: `<creator>:<name>`." }),
  created_at: timestamp,
});
export type IncomingHook = z.infer<typeof IncomingHook>;

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

export const toolPolicies = ["ask", "direct", "always"] as const;

export const ToolGrant = record("ToolGrant", {
  server_id: uuid,
  tool: z.string().meta({ description: "The name of the tool at its server." }),
  policy: z.enum(toolPolicies).meta({
    description:
      "`ask`: every call waits for approval. `direct`: calls run at once in the owner's own conversation with the agent, and wait for approval elsewhere. `always`: calls run at once.",
  }),
  changed: z.boolean().meta({
    description:
      "Whether the tool's description or schema changed since it was granted. Its calls then wait for approval until it is granted again.",
  }),
});
export type ToolGrant = z.infer<typeof ToolGrant>;

export const ToolServer = record("ToolServer", {
  id: uuid,
  name: z.string(),
  url: z.string().nullable().meta({ description: "Null for a program that the operator runs." }),
  status: z.enum(["ready", "unreachable", "unauthorized"]).meta({
    description:
      "How the last contact with it ended. `unauthorized`: it demands a token, or refuses the one it has.",
  }),
  tools: z
    .array(
      z.object({
        name: z.string(),
        title: z.string(),
        description: z.string(),
        input_schema: z
          .record(z.string(), z.unknown())
          .meta({ description: "The JSON Schema of its arguments." }),
      }),
    )
    .meta({ description: "The tools that it offered when it was last asked, at most 128." }),
  error: z.string().nullable().meta({ description: "Why it is not ready; null if it is." }),
  operator: z
    .boolean()
    .meta({ description: "Whether the operator offers it to everybody; it cannot be removed." }),
});
export type ToolServer = z.infer<typeof ToolServer>;

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

export const GroupAgent = record("GroupAgent", { agent: Account, always_on: z.boolean() });
export type GroupAgent = z.infer<typeof GroupAgent>;

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

export const PendingToolCall = record("PendingToolCall", {
  call: ToolCallDetail,
  message_id: uuid,
  conversation_id: uuid,
  agent: Account,
});
export type PendingToolCall = z.infer<typeof PendingToolCall>;

export const PendingQuestion = record("PendingQuestion", {
  message_id: uuid.meta({ description: "The message with the form." }),
  conversation_id: uuid,
  agent: Account,
  created_at: timestamp,
  expires_at: timestamp.meta({ description: "The tool waits for an answer until then." }),
});
export type PendingQuestion = z.infer<typeof PendingQuestion>;

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
