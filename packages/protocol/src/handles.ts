/** Handles in text: `@alice` for a person, `@alice:claude` for an agent. */

export interface Handle {
  /** Where it stands, with its sign. */
  start: number;
  end: number;
  /** In lowercase, without the sign. */
  username: string;
}

/**
 * What may stand before a handle: anything but a Latin letter (with its accents), a digit, `_`, `@`,
 * or a backslash that escapes the sign. So an e-mail address has none, and scripts without spaces do.
 */
const BEFORE = String.raw`(?<![\p{Script=Latin}\p{Nd}_@]\p{M}*)(?<!(?<!\\)(?:\\\\)*\\)`;
/** It ends where no character of a handle follows: `@alice:claude-x` is not `@alice:claude`. */
const HANDLE = new RegExp(`${BEFORE}@([A-Za-z0-9_]+(?::[A-Za-z][A-Za-z0-9_-]*)?)`, "gu");
const UNFINISHED = new RegExp(`${BEFORE}@([A-Za-z0-9_]*(?::[A-Za-z0-9_-]*)?)$`, "u");

/** Every handle in a text that is not code. */
export const handlesIn = (text: string): Handle[] =>
  Array.from(text.matchAll(HANDLE), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
    username: (match[1] ?? "").toLowerCase(),
  }));

/** The handle that is being typed at the end of a text; its username may be empty so far. */
export function handleAtEnd(text: string): Handle | null {
  const match = UNFINISHED.exec(text);
  if (!match) return null;
  return { start: match.index, end: text.length, username: (match[1] ?? "").toLowerCase() };
}
