import type { EventFrame } from "@parley/protocol";
import { type EventChange, frameOf, personTyping } from "../changes/change.ts";

/** Typing ends when it is not renewed for this long. */
const EXPIRES_MS = 6000;

interface Entry {
  readonly params: EventFrame<"events.typing">["params"];
  readonly timer: NodeJS.Timeout;
}

/**
 * Ends typing that is not renewed, and that of people who are gone, for the clients of this node. Every
 * node does it for itself, so that it needs no other one, and none that dies leaves somebody typing. The
 * typing of agents ends with their turns.
 */
export class TypingExpiry {
  readonly #deliver: (event: EventChange) => void;
  /** By username and conversation. */
  readonly #entries = new Map<string, Map<string, Entry>>();

  constructor(deliver: (event: EventChange) => void) {
    this.#deliver = deliver;
  }

  /** Notes an event that was delivered to the clients of this node. */
  note(event: EventChange): void {
    if (event.name !== "events.typing" || event.exceptUser === undefined) return;
    const { params } = frameOf(event) as EventFrame<"events.typing">;
    this.#drop(params);
    if (!params.is_typing) return;
    const timer = setTimeout(() => this.#end(params), EXPIRES_MS);
    const { username } = params.actor;
    const entries = this.#entries.get(username) ?? new Map<string, Entry>();
    this.#entries.set(username, entries.set(params.conversation_id, { params, timer }));
  }

  /** The last client of an account on any node is gone. */
  gone(username: string): void {
    for (const { params } of [...(this.#entries.get(username)?.values() ?? [])]) this.#end(params);
  }

  #end(params: Entry["params"]): void {
    this.#drop(params);
    this.#deliver(personTyping(params.conversation_id, params.actor, false));
  }

  #drop({ actor: { username }, conversation_id }: Entry["params"]): void {
    const entries = this.#entries.get(username);
    clearTimeout(entries?.get(conversation_id)?.timer);
    entries?.delete(conversation_id);
    if (entries?.size === 0) this.#entries.delete(username);
  }
}
