import type { ChatState } from "@parley/protocol";
import { iso } from "./time.ts";

/** Groups of more people notify only of mentions, unless a member wants it otherwise. */
const MOST_PEOPLE_HEARD = 20;

/** What is stored of a member's own view of a conversation, and what it depends on. */
export interface StoredChatState {
  /** Null unless it was set. */
  readonly notify: ChatState["notify"] | null;
  readonly muted_until: number | null;
  readonly pinned: boolean | number;
  readonly archived: boolean | number;
  readonly kind: "direct" | "group";
  /** The number of people in the conversation. */
  readonly people: number;
}

/** The view as its owner is shown it at a moment. */
export function shownChatState(stored: StoredChatState, now = Date.now()): ChatState {
  const { notify, muted_until, pinned, archived, kind, people } = stored;
  const isSmall = kind === "direct" || people <= MOST_PEOPLE_HEARD;
  return {
    notify: notify ?? (isSmall ? "all" : "mentions"),
    muted_until: muted_until !== null && muted_until > now ? iso(muted_until) : null,
    pinned: Boolean(pinned),
    archived: Boolean(archived),
  };
}
