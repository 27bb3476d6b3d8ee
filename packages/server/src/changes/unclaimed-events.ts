import type { EventChange } from "./change.ts";

/** Enough for the time in which an introduction by another node arrives. */
const MAX_EVENTS = 5000;
/** Of all frames together. */
const MAX_CHARACTERS = 8_000_000;

/**
 * The latest counted events of this node in conversations that nobody here takes part in. Another node
 * may have added somebody whose client is here, and its introduction may arrive later. They are kept
 * here because a node does not read its own events from the log.
 */
export class UnclaimedEvents {
  #events: EventChange[] = [];
  #characters = 0;

  add(change: EventChange): void {
    if (change.delivery !== "counted") return;
    this.#events.push(change);
    this.#characters += change.data.length;
    const isFull = this.#events.length > 2 * MAX_EVENTS || this.#characters > 2 * MAX_CHARACTERS;
    if (isFull) this.#dropOldest();
  }

  /** Drops many at a time: to remove one would move all others. */
  #dropOldest(): void {
    let kept = 0;
    let characters = 0;
    for (const { data } of this.#events.toReversed()) {
      if (kept === MAX_EVENTS || characters + data.length > MAX_CHARACTERS) break;
      kept++;
      characters += data.length;
    }
    this.#events = this.#events.slice(this.#events.length - kept);
    this.#characters = characters;
  }

  /** Removes the events of a conversation, and returns them in their order. */
  take(conversation: string): EventChange[] {
    const isOf = ({ at }: EventChange) => at?.conversation_id === conversation;
    const found = this.#events.filter(isOf);
    if (found.length > 0) this.#events = this.#events.filter((change) => !isOf(change));
    for (const { data } of found) this.#characters -= data.length;
    return found;
  }
}
