/** A plain call stands for about 0.2 ms of CPU time. */
export const COST_PER_MS = 5;

/** Participants whose clients are sent what a call announces, for the cost of a plain call. */
const PARTICIPANTS_PER_COST = 50;

/** Characters of a message that cost as much as a plain call, to store and to index. */
const CHARACTERS_PER_COST = 512;

export const contentCost = (content: string): number =>
  Math.floor(content.length / CHARACTERS_PER_COST);

/** What it costs to send an event to so many participants. */
export const fanOutCost = (participants: number): number =>
  Math.floor(participants / PARTICIPANTS_PER_COST);
