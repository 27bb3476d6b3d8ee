import { reactionReads, reactionWrites } from "./reactions.ts";
import { reportReads, reportWrites } from "./reports.ts";

/** The methods that both dialects share. */
export const reads = { ...reactionReads, ...reportReads };
export const writes = { ...reactionWrites, ...reportWrites };
