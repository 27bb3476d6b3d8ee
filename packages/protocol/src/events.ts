import { z } from "zod";
import {
  Account,
  BlockList,
  ChatState,
  ConversationUpdate,
  Message,
  Presence,
  Reaction,
  SharedConversation,
  ToolCall,
  TurnRequest,
} from "./records.ts";
import { uuid } from "./text/fields.ts";

/**
 * How an event travels:
 * - `counted`: a stored change that increments its conversation's counter; `at` has the new value.
 * - `standing`: stored; `at` has the counter's current value.
 * - `durable`: stored, without `at`. What it changes has an order of its own, such as `Account.version`.
 * - `transient`: not stored; lost while a client is away.
 */
export type Delivery = "counted" | "standing" | "durable" | "transient";

export interface EventContract<Params extends z.ZodType = z.ZodType> {
  readonly params: Params;
  readonly delivery: Delivery;
  /** How it travels when it concerns only the caller's own clients, where that differs. */
  readonly ownDelivery: Delivery;
  /** Whether it always concerns only the account's own clients, so that webhooks never receive it. */
  readonly isOwn: boolean;
  /** What its frame can have besides `at`. */
  readonly carries: "history_id" | "own_seq" | null;
  readonly summary: string;
}

type Details<Own extends Delivery> = Partial<Pick<EventContract, "isOwn" | "carries">> & {
  ownDelivery?: Own;
};

// `NoInfer`, because `satisfies` below would otherwise widen `Own` to every delivery.
const event = <Params extends z.ZodType, How extends Delivery, Own extends Delivery = How>(
  delivery: How,
  params: Params,
  summary: string,
  details: Details<Own> = {},
): EventContract<Params> & { delivery: How; ownDelivery: NoInfer<Own> } => ({
  params,
  delivery,
  ownDelivery: delivery as Delivery as Own,
  isOwn: false,
  carries: null,
  summary,
  ...details,
});

export const events = {
  "events.hello": event("transient", Account, "Sent once, first, to the client that connected.", {
    isOwn: true,
    carries: "history_id",
  }),
  "events.messageNew": event(
    "counted",
    Message,
    "A new message: a person's, an agent's empty placeholder, or the reply to a component action.",
  ),
  "events.messageDelta": event(
    "transient",
    z.object({ id: uuid, delta: z.string(), offset: z.int() }),
    "A chunk appended to a streaming message; `offset` is its length in bytes after appending.",
  ),
  "events.messageComplete": event("counted", Message, "A message has finished streaming."),
  "events.messageEdited": event(
    "counted",
    Message,
    "A message has a new content, somebody used a component of it, or a file of it became ready or failed (`edited_at` stays for both).",
  ),
  "events.messageDeleted": event(
    "counted",
    z.object({ conversation_id: uuid, ids: z.array(uuid) }),
    "Messages to drop. When the caller hid them it goes only to the caller's clients, with `own_seq` in place of `at`.",
    { ownDelivery: "durable", carries: "own_seq" },
  ),
  "events.reactionAdded": event("counted", Reaction, "Somebody reacted to a message."),
  "events.reactionRemoved": event(
    "counted",
    z.object({ message_id: uuid, reactor: Account, emoji: z.string() }),
    "A reaction was taken back.",
  ),
  "events.typing": event(
    "transient",
    z.object({ conversation_id: uuid, actor: Account, is_typing: z.boolean() }),
    "Somebody started or stopped typing; goes to everyone but them.",
  ),
  "events.presence": event(
    "transient",
    Presence,
    "Somebody whom the socket watches with `watchPresence` came online, went offline, or is not told of any more (not online, `last_seen_at` null). Goes to that socket alone.",
    { isOwn: true },
  ),
  "events.turnRequested": event(
    "transient",
    TurnRequest,
    "A turn of an external agent waits for `claimTurn`; goes only to the agent's own clients.",
    { isOwn: true },
  ),
  "events.conversationNew": event(
    "standing",
    SharedConversation,
    "A conversation the account now takes part in.",
  ),
  "events.conversationUpdated": event(
    "counted",
    ConversationUpdate,
    "Title, picture, members, admin or the mode of an agent of a group changed.",
  ),
  "events.toolCallUpdated": event(
    "counted",
    z.object({ message_id: uuid, call: ToolCall }),
    "A tool call of a message is new (it goes to the end of `tool_calls`), or has a new status.",
  ),
  "events.turnStatus": event(
    "transient",
    z.object({ message_id: uuid, text: z.string() }),
    "What an agent that is writing a message does right now, for people. Empty: nothing in particular.",
  ),
  "events.chatRead": event(
    "durable",
    z.object({ conversation_id: uuid, reader: Account, last_read_seq: z.int() }),
    "Somebody read up to a place, which never moves back. Sending a message reads up to it without this event.",
  ),
  "events.accountUpdated": event(
    "durable",
    Account,
    "Somebody who takes or took part in a conversation of the account changed their display name or picture, or deleted their account. It also announces new settings of an agent, and a new policy of a person, to the clients of the owner or person alone, with `own_seq`: `getMyAgents` and `getMe` have them. Each client receives it once, however many conversations they share.",
    { carries: "own_seq" },
  ),
  "events.blocksUpdated": event(
    "durable",
    z.object({ usernames: BlockList.shape.usernames }),
    "The account blocked somebody or ended a block; goes only to its own clients, with `own_seq`.",
    { isOwn: true, carries: "own_seq" },
  ),
  "events.chatStateUpdated": event(
    "durable",
    z.object({ conversation_id: uuid, state: ChatState, last_read_seq: z.int() }),
    "The account's own view of a conversation changed: by `setChatState`, `markUnread` or what it reads after that, or because a message has ended the archive. Goes only to its own clients, with `own_seq`. Also a lower `last_read_seq` is the newer one if its `own_seq` is higher.",
    { isOwn: true, carries: "own_seq" },
  ),
  "events.chatCleared": event(
    "durable",
    z.object({ conversation_id: uuid, cleared_seq: z.int(), erased: z.boolean() }),
    "The account cleared a conversation: nothing with a `seq` up to `cleared_seq` exists for it any more, and all of that counts as read; the conversation leaves its lists until something new comes. `erased`: the conversation is gone for everybody. Goes only to its own clients, with `own_seq`.",
    { isOwn: true, carries: "own_seq" },
  ),
} as const satisfies Record<string, EventContract>;

export type Events = typeof events;
export type EventName = keyof Events;
/** The events that can travel in a certain way. */
export type EventsDelivered<How extends Delivery> = {
  [Name in EventName]: How extends Events[Name]["delivery" | "ownDelivery"] ? Name : never;
}[EventName];
export type EventParams<Name extends EventName> = z.output<Events[Name]["params"]>;

/** The place of a counted or standing event in its conversation. */
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
    /** The caller's own counter after a deletion for oneself, a change of the block list, of the view of a conversation or of the settings of an agent, or a new policy. */
    own_seq?: number;
  };
}[Name];
