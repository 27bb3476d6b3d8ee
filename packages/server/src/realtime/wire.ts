import { Account } from "@parley/protocol";
import { z } from "zod";
import type { Audience, Membership } from "../announcement.ts";
import type { EventPacket } from "./bus.ts";

const Members = z.object({ conversation: z.string(), users: z.array(z.string()) });

const Header = z.object({
  at: z.object({ conversation_id: z.string(), seq: z.int().nonnegative() }).optional(),
  id: z.string().optional(),
  stream: z
    .object({
      message: z.string(),
      from: z.int().nonnegative(),
      to: z.int().nonnegative(),
      // Nodes of an earlier version do not say it.
      begins: z.boolean().default(false),
      ends: z.boolean(),
    })
    .optional(),
  exceptUser: z.string().optional(),
  exceptSocket: z.string().optional(),
  joins: Members.optional(),
  leaves: Members.optional(),
  // Nodes of an earlier version know of no versions.
  account: Account.extend({ version: z.int().default(0) }).optional(),
});

const decoder = new TextDecoder();
const FRAME = '{"method":"events.';

/** A line about the event, then the frame as sockets get it, which nobody parses on the way. */
export function encodeEvent({ kind: _, to: __, data, ...header }: EventPacket): string {
  return `${JSON.stringify(header)}\n${data}`;
}

/** An event for several accounts, as each of them gets it. */
export function* encodeForEach(
  users: readonly string[],
  { joins, leaves, ...packet }: EventPacket,
): Generator<[username: string, text: string]> {
  const only = (username: string, moved: Membership | undefined) =>
    moved?.users.includes(username) ? { ...moved, users: [username] } : undefined;
  for (const username of users) {
    const own = { joins: only(username, joins), leaves: only(username, leaves) };
    yield [username, encodeEvent({ ...packet, ...own })];
  }
}

/** Throws when it is not an event. */
export function decodeEvent(bytes: Uint8Array, to: Audience): EventPacket {
  const text = decoder.decode(bytes);
  const end = text.indexOf("\n");
  const header = Header.parse(JSON.parse(text.slice(0, end)));
  const data = text.slice(end + 1);
  if (!data.startsWith(FRAME)) throw new Error("the event has no frame");
  return { kind: "event", to, data, ...header };
}

const NodeMessage = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("session_ended"), session_id: z.string() }),
  z.object({
    kind: z.literal("turns_ended"),
    turns: z.array(z.object({ id: z.int(), node: z.string().nullable() })),
  }),
  // What the nodes tell each other of themselves; whoever reads it knows its shape.
  z.object({ kind: z.literal("cluster"), body: z.unknown() }),
]);
export type NodeMessage = z.infer<typeof NodeMessage>;

/** Throws when it is not one. */
export const decodeNodeMessage = (bytes: Uint8Array): NodeMessage =>
  NodeMessage.parse(JSON.parse(decoder.decode(bytes)));
