import type { EventFrame } from "@parley/protocol";
import { type EventChange, frameOf, personTyping } from "../changes/change.ts";

/** Typing ends when it is not renewed for this long. */
const EXPIRES_MS = 6000;

type Typing = EventFrame<"events.typing">["params"];

/**
 * Ends typing that is not renewed, and that of people who are gone, for the clients of this node. Every
 * node does it for itself, so that it needs no other one, and none that dies leaves somebody typing. The
 * typing of agents ends with their turns.
 */
export function createTypingExpiry(deliver: (event: EventChange) => void) {
  /** By username and conversation. */
  const entries = new Map<string, Map<string, { params: Typing; timer: NodeJS.Timeout }>>();

  function end(params: Typing): void {
    drop(params);
    deliver(personTyping(params.conversation_id, params.actor, false));
  }

  function drop({ actor: { username }, conversation_id }: Typing): void {
    const own = entries.get(username);
    clearTimeout(own?.get(conversation_id)?.timer);
    own?.delete(conversation_id);
    if (own?.size === 0) entries.delete(username);
  }

  return {
    /** Notes an event that was delivered to the clients of this node. */
    note(event: EventChange): void {
      if (event.name !== "events.typing" || event.exceptUser === undefined) return;
      const { params } = frameOf(event) as EventFrame<"events.typing">;
      drop(params);
      if (!params.is_typing) return;
      const timer = setTimeout(() => end(params), EXPIRES_MS);
      const { username } = params.actor;
      const own = entries.get(username) ?? new Map();
      entries.set(username, own.set(params.conversation_id, { params, timer }));
    },
    /** The last client of an account on any node is gone. */
    gone(username: string): void {
      for (const { params } of [...(entries.get(username)?.values() ?? [])]) end(params);
    },
  };
}
