export interface SearchQuery {
  /** Words that must all occur; the last may be the beginning of one. */
  words: readonly string[];
  viewerId: number;
  /** Search only this conversation. */
  conversationId?: number | undefined;
  /** Return only hits older than this `position`. */
  before?: number | undefined;
  limit: number;
}

export interface SearchHit {
  uuid: string;
  /** Position in the results, to continue from. */
  position: number;
}

/** Called with the milliseconds that a search has taken, also if it failed or nobody waits for it any more. */
export type Worked = (ms: number) => void;
