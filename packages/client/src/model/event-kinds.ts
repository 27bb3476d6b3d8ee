import type { EventFrame, EventsDelivered } from "@parley/protocol";

/** Frames of events that increment the conversation's counter. */
export type CountedFrame = EventFrame<EventsDelivered<"counted">>;

/** Events whose `at` has the current value of the counter, without incrementing it. */
type StandingEvent = EventsDelivered<"standing">;

/**
 * The compiler checks this list against the contract. Importing the contract's own list would add
 * its schema library to every bundle.
 */
const STANDING_EVENTS: Readonly<Record<StandingEvent, true>> = { "events.conversationNew": true };

/** Whether `at` has the counter's current value, and not that of a change which the event describes. */
export const isStanding = (frame: EventFrame): frame is EventFrame<StandingEvent> =>
  frame.method in STANDING_EVENTS;
