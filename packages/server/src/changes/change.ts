import type { EventFrame, EventName, EventParams } from "@parley/protocol";

/** Who receives an event: everyone in a conversation, or all clients of certain accounts. */
export type Audience = { conversation: string } | { users: readonly string[] };

export interface Membership {
  conversation: string;
  users: readonly string[];
}

/**
 * Something committed that clients hear of. Units of work emit announcements; the store hands
 * them on, in commit order, once they are on disk.
 */
export type Announcement =
  | {
      frame: EventFrame;
      to: Audience;
      /** Tells apart changes that no counter counts. */
      id?: string;
      /** The socket that asked for the change and has its answer already. */
      exceptSocket?: string | undefined;
      /** Whose clients hear a conversation's events from this one on. */
      joins?: Membership;
      /** Whose clients hear this event of a conversation as their last. */
      leaves?: Membership;
    }
  | { endedSession: string }
  /** Agents have something to do. */
  | { queuedTurns: true }
  /** The nodes that run these turns are to let go of them. */
  | { endedTurns: readonly { id: number; node: string | null }[] };

/** A durable change of a conversation, told to everyone in it with the counter's new value. */
export const counted = <Name extends EventName>(
  method: Name,
  params: EventParams<Name>,
  conversation_id: string,
  seq: number,
): Announcement => ({
  frame: { method, params, at: { conversation_id, seq } } as EventFrame,
  to: { conversation: conversation_id },
});

/** A durable change that moves no counter on. */
export const uncounted = (frame: EventFrame, to: Audience): Announcement => ({
  id: Bun.randomUUIDv7(),
  frame,
  to,
});
