import { z } from "zod";
import { Account, ConversationUpdate, Message, Reaction, SharedConversation } from "./records.ts";
import { uuid } from "./text.ts";

/**
 * How an event relates to the conversation's change counter:
 * `counted` ones are durable changes and carry `at` with the counter's new value,
 * `standing` ones carry `at` with the counter as it stands, `passing` ones carry none.
 */
export type Counting = "counted" | "standing" | "passing";

export interface EventContract<Params extends z.ZodType = z.ZodType> {
  readonly params: Params;
  readonly counting: Counting;
  readonly summary: string;
}

const event = <Params extends z.ZodType>(counting: Counting, params: Params, summary: string) => ({
  params,
  counting,
  summary,
});

export const events = {
  "events.hello": event("passing", Account, "Sent once, first, to the client that connected."),
  "events.messageNew": event(
    "counted",
    Message,
    "A new message: a person's, an agent's empty placeholder, or the reply to a component action.",
  ),
  "events.messageDelta": event(
    "passing",
    z.object({ id: uuid, delta: z.string(), offset: z.int() }),
    "A chunk appended to a streaming message; `offset` is its length in bytes after appending.",
  ),
  "events.messageComplete": event("counted", Message, "A message has finished streaming."),
  "events.messageEdited": event(
    "counted",
    Message,
    "A message has a new content, or somebody used a component of it (`edited_at` stays).",
  ),
  "events.messageDeleted": event(
    "counted",
    z.object({ conversation_id: uuid, ids: z.array(uuid) }),
    "Messages to drop. When the caller hid them it goes only to the caller's clients, with `own_seq` in place of `at`.",
  ),
  "events.reactionAdded": event("counted", Reaction, "Somebody reacted to a message."),
  "events.reactionRemoved": event(
    "counted",
    z.object({ message_id: uuid, reactor: Account, emoji: z.string() }),
    "A reaction was taken back.",
  ),
  "events.typing": event(
    "passing",
    z.object({ conversation_id: uuid, actor: Account, is_typing: z.boolean() }),
    "Somebody started or stopped typing; goes to everyone but them.",
  ),
  "events.conversationNew": event(
    "standing",
    SharedConversation,
    "A conversation the account now takes part in.",
  ),
  "events.conversationUpdated": event(
    "counted",
    ConversationUpdate,
    "Title, members, admin or the mode of an agent of a group changed.",
  ),
  "events.chatRead": event(
    "passing",
    z.object({ conversation_id: uuid, reader: Account, last_read_seq: z.int() }),
    "Somebody read up to a place, which never moves back. Sending a message reads up to it without this event.",
  ),
  "events.accountUpdated": event(
    "passing",
    Account,
    "Somebody who shares a conversation with the account changed their display name.",
  ),
} as const satisfies Record<string, EventContract>;

export type Events = typeof events;
export type EventName = keyof Events;
export type EventParams<Name extends EventName> = z.output<Events[Name]["params"]>;

/** Where a durable event stands in its conversation. */
export interface EventPlace {
  conversation_id: string;
  seq: number;
}

export type EventFrame<Name extends EventName = EventName> = {
  [Each in Name]: {
    method: Each;
    params: EventParams<Each>;
    at?: EventPlace;
    /** In `events.hello` only: names the history that all counters belong to. */
    history_id?: string;
    /** The caller's own counter after a deletion for oneself. */
    own_seq?: number;
  };
}[Name];
