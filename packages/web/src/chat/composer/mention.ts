import type { Account } from "@parley/protocol";
import { mentionedHandles } from "@parley/protocol/markup";
import { handleAtEnd } from "@parley/protocol/text/handles";

/** An unfinished handle at the caret: its start, and its text so far. */
export interface Mention {
  start: number;
  query: string;
}

export function mentionAt(text: string, caret: number): Mention | null {
  const handle = handleAtEnd(text.slice(0, caret));
  return handle && { start: handle.start, query: handle.username };
}

const MAX_CANDIDATES = 8;

/** Participants whose username or a word of whose name begins with the query; people first. */
export function candidates(participants: readonly Account[], me: string, query: string): Account[] {
  const fits = ({ username, display_name }: Account) =>
    username.startsWith(query) ||
    username.includes(`:${query}`) ||
    display_name
      .toLowerCase()
      .split(/\s+/)
      .some((word) => word.startsWith(query));
  return participants
    .filter((account) => account.username !== me && fits(account))
    .toSorted((one, other) => other.kind.localeCompare(one.kind))
    .slice(0, MAX_CANDIDATES);
}

/** The text with the completed handle, and the new caret. */
export function complete(text: string, caret: number, mention: Mention, username: string) {
  const before = `${text.slice(0, mention.start)}@${username} `;
  return { text: before + text.slice(caret).replace(/^ /, ""), caret: before.length };
}

/** The text with a handle in front, unless it already mentions the account. */
export const addressed = (text: string, username: string): string =>
  mentionedHandles(text).includes(username) ? text : `@${username} ${text}`;

/** The text without the handle that `addressed` added. */
export const unaddressed = (text: string, username: string): string =>
  text.startsWith(`@${username} `) ? text.slice(username.length + 2) : text;
