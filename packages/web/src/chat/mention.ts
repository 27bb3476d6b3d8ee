import type { Account } from "@parley/protocol";
import { handleAtEnd } from "@parley/protocol/handles";
import { mentionedHandles } from "@parley/protocol/markup";

/** A handle that is being typed: where it begins, and what of it is there. */
export interface Mention {
  start: number;
  query: string;
}

export function mentionAt(text: string, caret: number): Mention | null {
  const handle = handleAtEnd(text.slice(0, caret));
  return handle && { start: handle.start, query: handle.username };
}

const MOST = 8;

/** Those whose username, or a word of whose name, begins so; agents after people. */
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
    .slice(0, MOST);
}

/** The text with the handle completed, and where the caret goes. */
export function complete(text: string, caret: number, mention: Mention, username: string) {
  const before = `${text.slice(0, mention.start)}@${username} `;
  return { text: before + text.slice(caret).replace(/^ /, ""), caret: before.length };
}

/** The text with an account's handle in front of it, unless it is mentioned already. */
export const addressed = (text: string, username: string): string =>
  mentionedHandles(text).includes(username) ? text : `@${username} ${text}`;

/** The text without the handle that `addressed` has put in. */
export const unaddressed = (text: string, username: string): string =>
  text.startsWith(`@${username} `) ? text.slice(username.length + 2) : text;
