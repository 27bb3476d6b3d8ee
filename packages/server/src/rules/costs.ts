/** A plain call stands for about 0.2 ms of CPU time. */
export const COST_PER_MS = 5;

/** Participants whose clients are sent what a call announces, for the cost of a plain call. */
const PARTICIPANTS_PER_COST = 50;

/** What it costs to send an event to everybody in a conversation. */
export const fanOutCost = ({ participant_count }: { participant_count: number }): number =>
  Math.floor(participant_count / PARTICIPANTS_PER_COST);
