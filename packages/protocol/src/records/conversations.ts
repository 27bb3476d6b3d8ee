import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { Message } from "./messages.ts";
import { record } from "./record.ts";

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
  external_id: z.string().optional().meta({
    description:
      "The id that a product has given the group with `upsertChats`; left out for all other conversations.",
  }),
  metadata: z.record(z.string(), z.unknown()).optional().meta({
    description:
      "What the product stores with the group; left out where there is no `external_id`.",
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
      "metadata_changed",
    ])
    .meta({
      description:
        "`mode_changed`: an agent was set to always on or to mention-only. `picture_changed`: the group has a new picture, or none any more. `metadata_changed`: a product stored other metadata. Further kinds may follow: ignore those that you do not know.",
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

/** How one person sees a conversation. */
export const ChatState = record("ChatState", {
  notify: z.enum(["all", "mentions", "none"]).meta({
    description:
      "Of which messages the caller is notified. Unless it was set: `all` in a direct conversation and in a group of up to 20 people, otherwise `mentions`. Agents do not count as people.",
  }),
  muted_until: timestamp.nullable().meta({
    description: "Until then the caller is notified of nothing. Null once it has passed.",
  }),
  pinned: z.boolean(),
  archived: z.boolean().meta({
    description:
      "Ends with the next message, of the caller or of somebody whom they have not blocked, unless the conversation is muted or its level is `none`. Imported messages do not end it.",
  }),
});
export type ChatState = z.infer<typeof ChatState>;

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
      "The caller's own counter when the unread figures and `last_message` were read. It goes up by one when the caller hides messages, blocks somebody, ends a block, or changes their view of a conversation. Of two values of `last_read_seq` the one with the higher `own_seq` is newer.",
  }),
  state: ChatState.optional().meta({ description: "The caller's own view. Agents have none." }),
  cleared_seq: z.int().optional().meta({
    description:
      "Nothing with a `seq` up to this value exists for the caller any more: see `clearChat`. Zero at first. Agents have none.",
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

export const GroupAgent = record("GroupAgent", { agent: Account, always_on: z.boolean() });
export type GroupAgent = z.infer<typeof GroupAgent>;
