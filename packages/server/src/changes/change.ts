import type {
  Account,
  Delivery,
  EventFrame,
  EventParams,
  EventPlace,
  EventsDelivered,
  Message,
  Presence,
  SharedConversation,
} from "@parley/protocol";
import { publicAccount } from "../rules/accounts.ts";
import { encode, encodeShared } from "../rules/encoding.ts";

/** Who receives an event: everyone in a conversation, or all clients of certain accounts. */
export type Audience = { conversation: string } | { users: readonly string[] };

export interface Membership {
  conversation: string;
  users: readonly string[];
}

/** A part of a streaming message: its placeholder (no bytes), a delta, or its end (all bytes). */
export interface StreamPart {
  message: string;
  from: number;
  to: number;
  begins: boolean;
  ends: boolean;
  /** Of a delta: the counter value of the placeholder, which clients receive first. */
  after?: number | undefined;
}

/** An event for clients, encoded once. */
export interface EventChange<How extends Delivery = Delivery> {
  kind: "event";
  name: EventsDelivered<How>;
  delivery: How;
  to: Audience;
  /** The encoded frame, as sockets receive it. */
  data: string;
  /** The frame's `at`. */
  at?: EventPlace | undefined;
  /** Identifies a change that is stored but has no counter value. */
  id?: string | undefined;
  /** The message whose text the frame has. The log keeps this reference and no text. */
  shows?: string | undefined;
  /** The frame without that text, for the log. A new message has none: its row has all of it. */
  outline?: string | undefined;
  stream?: StreamPart | undefined;
  /** The event shows an imported message to clients; webhooks do not receive it. */
  imported?: true | undefined;
  /** An account with its new display name. */
  account?: Account | undefined;
  /** The conversations that show the account, for webhooks that receive one conversation only. */
  concerns?: readonly string[] | undefined;
  /** Clients of this account do not receive it. */
  exceptUser?: string | undefined;
  /** The socket that made the change and has its reply. */
  exceptSocket?: string | undefined;
  /** Accounts whose clients receive the conversation's events after this one. */
  joins?: Membership | undefined;
  /** Accounts whose clients receive this event of the conversation as their last. */
  leaves?: Membership | undefined;
}

/** A change inside the service that no client receives as an event. */
export type InternalChange =
  | { kind: "session_ended"; session_id: string }
  /**
   * All sockets of the account close: it was suspended or deleted. Sockets that it opens afterwards stay
   * open, so no node delivers a change with the same id twice. Earlier versions stored no id.
   */
  | { kind: "account_suspended"; username: string; id?: string | undefined }
  | PresenceRules
  /** The owner of an agent answered what a tool asked. */
  | { kind: "elicitation_answered"; id: string }
  /** Turns of agents wait to be run. `agents`: the usernames of the external ones among them. */
  | { kind: "turns_queued"; agents?: readonly string[] }
  /** The nodes that run these turns abort them. */
  | { kind: "turns_ended"; turns: readonly { id: number; node: string | null }[] };

/** Who is told of whose presence may have changed, for reasons that events do not show to all nodes. */
export type PresenceRules = {
  kind: "presence_changed";
  /** Between this person and others; with `other`, between the two alone. */
  username?: string | undefined;
  other?: string | undefined;
  /** Between the people in a conversation. */
  conversation?: string | undefined;
};

/** Closes all sockets of an account. */
export const accountSuspended = (username: string): InternalChange => ({
  kind: "account_suspended",
  username,
  id: Bun.randomUUIDv7(),
});

export type TransientChange = EventChange<"transient">;
/** What units of work emit: stored in the change log in the same transaction. */
export type DurableChange = EventChange<Exclude<Delivery, "transient">> | InternalChange;

/** A change has the same shape from its unit of work to the sockets and the other nodes. */
export type Change = EventChange | InternalChange;

/**
 * A change as the log stores it. A frame that has people's text is stored without it: the text is in
 * one place, so that deleting it there erases it.
 */
export type LoggedChange =
  | InternalChange
  | (Omit<EventChange, "data" | "outline"> & { data?: string });

type Details = Omit<EventChange, "kind" | "name" | "delivery" | "to" | "data" | "at" | "id">;

/** A change that increments the conversation's counter to `seq`. */
export const counted = <Name extends EventsDelivered<"counted">>(
  method: Name,
  params: EventParams<Name>,
  conversation_id: string,
  seq: number,
  details: Details = {},
): EventChange<"counted"> => {
  const at = { conversation_id, seq };
  return {
    kind: "event",
    name: method,
    delivery: "counted",
    to: { conversation: conversation_id },
    data: `{"method":"${method}","params":${encode(params)},"at":{"conversation_id":"${conversation_id}","seq":${seq}}}`,
    at,
    ...details,
  };
};

/** Shows a message as everybody sees it, and increments the counter. */
export const messageChanged = (
  method: "events.messageNew" | "events.messageComplete" | "events.messageEdited",
  message: Message,
  seq: number,
  stream?: StreamPart,
): EventChange<"counted"> => {
  // The author's reply has the same message.
  encodeShared(message);
  const isNew = method === "events.messageNew";
  const at = { conversation_id: message.conversation_id, seq };
  const outline = isNew ? undefined : JSON.stringify({ method, params: withoutText(message), at });
  const imported = isNew ? message.imported : undefined;
  const details = { shows: message.id, outline, stream, imported };
  return counted(method, message, message.conversation_id, seq, details);
};

const withoutText = (message: Message): Message => ({ ...message, content: "" });

/** What the log keeps of a frame that shows a conversation with the text of its last message. */
function conversationOutline<Frame extends { params: SharedConversation }>(frame: Frame) {
  const { last_message } = frame.params;
  if (!last_message) return {};
  const params = { ...frame.params, last_message: withoutText(last_message) };
  return { shows: last_message.id, outline: JSON.stringify({ ...frame, params }) };
}

/** A change of a group itself. */
export const groupChanged = (
  params: EventParams<"events.conversationUpdated">,
  seq: number,
  leaves: Membership | undefined,
): EventChange<"counted"> => {
  const method = "events.conversationUpdated";
  const at = { conversation_id: params.id, seq };
  return counted(method, params, params.id, seq, {
    ...conversationOutline({ method, params, at }),
    leaves,
  });
};

/** Introduces accounts to a conversation; `at` has its counter as it stands. */
export const conversationShared = (
  shared: SharedConversation,
  users: readonly string[],
  exceptSocket?: string,
): EventChange<"standing"> => {
  const method = "events.conversationNew";
  const at = { conversation_id: shared.id, seq: shared.seq };
  return {
    kind: "event",
    name: method,
    delivery: "standing",
    to: { users },
    data: JSON.stringify({ method, params: shared, at }),
    at,
    ...conversationOutline({ method, params: shared, at }),
    joins: { conversation: shared.id, users },
    exceptSocket,
  };
};

/** A stored change that increments no conversation's counter. */
export const durable = <Name extends EventsDelivered<"durable">>(
  frame: Omit<EventFrame<Name>, "at"> & { method: Name },
  to: Audience,
  details: Details = {},
): EventChange<"durable"> => ({
  kind: "event",
  name: frame.method,
  delivery: "durable",
  to,
  data: JSON.stringify(frame),
  id: Bun.randomUUIDv7(),
  ...details,
});

/** An event that is sent and not stored. */
export const transient = <Name extends EventsDelivered<"transient">>(
  method: Name,
  params: EventParams<Name>,
  to: Audience,
  details: Details = {},
): TransientChange => ({
  kind: "event",
  name: method,
  delivery: "transient",
  to,
  data: JSON.stringify({ method, params }),
  ...details,
});

/** Typing of a person, or of the program of an agent. They receive nothing of it themselves. */
export function personTyping(conversation_id: string, actor: Account, is_typing: boolean) {
  const params = { conversation_id, actor: publicAccount(actor), is_typing };
  const to = { conversation: conversation_id };
  return transient("events.typing", params, to, { exceptUser: actor.username });
}

/** The first frame of a socket: an event for this client alone, which no subscriber receives. */
export const helloFrame = (params: Account, history_id: string): string => {
  const frame: EventFrame<"events.hello"> = { method: "events.hello", params, history_id };
  return JSON.stringify(frame);
};

/** The presence of a person, for the sockets that watch it: no subscriber receives this event either. */
export const presenceFrame = (params: Presence): string => {
  const frame: EventFrame<"events.presence"> = { method: "events.presence", params };
  return JSON.stringify(frame);
};

/** The frame of an event, for subscribers that need more than its encoded form. */
export const frameOf = ({ data }: EventChange): EventFrame => JSON.parse(data) as EventFrame;

/**
 * The next delta of a streaming message; `offset` is the message's length in bytes including it,
 * `after` the counter value of its placeholder.
 */
export const messageDelta = (
  message: string,
  conversation: string,
  delta: string,
  offset: number,
  after?: number,
): TransientChange => {
  const from = offset - Buffer.byteLength(delta);
  const stream = { message, from, to: offset, begins: false, ends: false, after };
  const params = { id: message, delta, offset };
  return transient("events.messageDelta", params, { conversation }, { stream });
};
