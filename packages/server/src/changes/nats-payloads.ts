import { Account, type Delivery, type EventName, type EventPlace } from "@parley/protocol";
import { z } from "zod";
import type { Audience, EventChange, InternalChange, Membership, StreamPart } from "./change.ts";

/** A schema for each field of a type: what a node sends, and no schema names, would be lost. */
type Fields<Sent> = { [Field in keyof Sent]-?: z.ZodType<Sent[Field]> };

/** What the receiver knows from the subject, what follows the header, and what only readers of the log need. */
type NotInHeader = "kind" | "to" | "data" | "shows" | "outline" | "concerns" | "imported";
type SentHeader = Omit<EventChange, NotInHeader>;
/** Nodes of an earlier version send neither the name nor the delivery of an event. */
type ReceivedHeader = Omit<SentHeader, "name" | "delivery"> & {
  name?: string | undefined;
  delivery?: Delivery | undefined;
};

const Members = z.object({
  conversation: z.string(),
  users: z.array(z.string()),
} satisfies Fields<Membership>);

const Place = z.object({
  conversation_id: z.string(),
  seq: z.int().nonnegative(),
} satisfies Fields<EventPlace>);

const Stream = z.object({
  message: z.string(),
  from: z.int().nonnegative(),
  to: z.int().nonnegative(),
  // Nodes of an earlier version do not send it.
  begins: z.boolean().default(false),
  ends: z.boolean(),
  after: z.int().nonnegative().optional(),
} satisfies Fields<StreamPart>);

const Header = z.object({
  name: z.string().optional(),
  delivery: z.enum(["counted", "standing", "durable", "transient"]).optional(),
  at: Place.optional(),
  id: z.string().optional(),
  stream: Stream.optional(),
  exceptUser: z.string().optional(),
  exceptSocket: z.string().optional(),
  joins: Members.optional(),
  leaves: Members.optional(),
  // Nodes of an earlier version send no version.
  account: Account.extend({ version: z.int().default(0) }).optional(),
} satisfies Fields<ReceivedHeader>);

const decoder = new TextDecoder();
const FRAME_START = '{"method":"';
const FRAME = `${FRAME_START}events.`;

/** A header line, then the frame as sockets receive it, so that no node parses the frame. */
export function encodeEvent(change: EventChange): string {
  const { kind, to, shows, outline, concerns, imported, data, ...header } = change;
  return `${JSON.stringify(header satisfies SentHeader)}\n${data}`;
}

/** Encodes an event for each account, without the memberships of the other accounts. */
export function* encodeForEach(
  users: readonly string[],
  { joins, leaves, ...event }: EventChange,
): Generator<[username: string, text: string]> {
  const only = (username: string, membership: Membership | undefined) =>
    membership?.users.includes(username) ? { ...membership, users: [username] } : undefined;
  const shared = joins || leaves ? null : encodeEvent(event);
  for (const username of users) {
    if (shared !== null) {
      yield [username, shared];
      continue;
    }
    const own = { joins: only(username, joins), leaves: only(username, leaves) };
    yield [username, encodeEvent({ ...event, ...own })];
  }
}

/** Throws when the payload is not an encoded event. */
export function decodeEvent(bytes: Uint8Array, to: Audience): EventChange {
  const text = decoder.decode(bytes);
  const end = text.indexOf("\n");
  const header = Header.parse(JSON.parse(text.slice(0, end)));
  const data = text.slice(end + 1);
  if (!data.startsWith(FRAME)) throw new Error("event has no frame");
  return {
    kind: "event",
    to,
    data,
    ...header,
    name: (header.name ?? nameIn(data)) as EventName,
    delivery: header.delivery ?? deliveryOf(header, to),
  };
}

const nameIn = (data: string) =>
  data.slice(FRAME_START.length, data.indexOf('"', FRAME_START.length));

/** The delivery of an event from a node that does not send it. */
function deliveryOf({ at, id }: z.infer<typeof Header>, to: Audience): Delivery {
  if (at) return "conversation" in to ? "counted" : "standing";
  return id === undefined ? "transient" : "durable";
}

type Internal<Kind extends InternalChange["kind"]> = Extract<InternalChange, { kind: Kind }>;
type EndedTurn = Internal<"turns_ended">["turns"][number];

const NodeMessage = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("session_ended"),
    session_id: z.string(),
  } satisfies Fields<Internal<"session_ended">>),
  z.object({
    kind: z.literal("account_suspended"),
    username: z.string(),
    // Nodes of an earlier version do not send it.
    id: z.string().optional(),
  } satisfies Fields<Internal<"account_suspended">>),
  z.object({
    kind: z.literal("presence_changed"),
    username: z.string().optional(),
    other: z.string().optional(),
    conversation: z.string().optional(),
  } satisfies Fields<Internal<"presence_changed">>),
  z.object({
    kind: z.literal("elicitation_answered"),
    id: z.string(),
  } satisfies Fields<Internal<"elicitation_answered">>),
  z.object({
    kind: z.literal("turns_queued"),
    agents: z.array(z.string()),
  } satisfies Fields<Internal<"turns_queued">>),
  z.object({
    kind: z.literal("turns_ended"),
    turns: z.array(
      z.object({ id: z.int(), node: z.string().nullable() } satisfies Fields<EndedTurn>),
    ),
  } satisfies Fields<Internal<"turns_ended">>),
  // Parsed by the cluster, which owns its format.
  z.object({ kind: z.literal("cluster"), body: z.unknown() }),
]);
export type NodeMessage = z.infer<typeof NodeMessage>;

/** Throws when the payload is not a message between nodes. */
export const decodeNodeMessage = (bytes: Uint8Array): NodeMessage =>
  NodeMessage.parse(JSON.parse(decoder.decode(bytes)));
