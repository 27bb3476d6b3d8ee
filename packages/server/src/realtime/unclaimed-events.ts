import type { EventChange } from "../changes/change.ts";

/** Enough for the time in which an introduction by another node arrives. */
const MAX_EVENTS = 5000;

/**
 * The latest counted events of this node in conversations that nobody here takes part in. Another node
 * may have added somebody whose client is here, and its introduction may arrive later: the log does
 * not bring a node's own events.
 */
export class UnclaimedEvents {
  private events: EventChange[] = [];

  add(change: EventChange): void {
    if (change.delivery !== "counted") return;
    this.events.push(change);
    // Now and then many at a time: removing one by one would move all others each time.
    if (this.events.length > 2 * MAX_EVENTS) this.events = this.events.slice(-MAX_EVENTS);
  }

  /** Removes the events of a conversation, and returns them in their order. */
  take(conversation: string): EventChange[] {
    const isOf = ({ at }: EventChange) => at?.conversation_id === conversation;
    const found = this.events.filter(isOf);
    if (found.length > 0) this.events = this.events.filter((change) => !isOf(change));
    return found;
  }
}
