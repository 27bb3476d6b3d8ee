/** Finds handles in text: `@alice` for a person, `@alice:claude` for an agent. */

export interface Handle {
  /** The range in the text, including the `@`. */
  start: number;
  end: number;
  /** In lowercase, without the `@`. */
  username: string;
}

/**
 * A handle may follow anything but a Latin letter (with combining accents), a digit, `_`, `@`, or a
 * backslash that escapes the `@`. An e-mail address therefore contains no handle, and handles work in
 * scripts without spaces.
 */
const BEFORE = String.raw`(?<![\p{Script=Latin}\p{Nd}_@]\p{M}*)(?<!(?<!\\)(?:\\\\)*\\)`;
/** Matches greedily, so that `@alice:claude-x` is not `@alice:claude`. */
const HANDLE = new RegExp(`${BEFORE}@([A-Za-z0-9_]+(?::[A-Za-z][A-Za-z0-9_-]*)?)`, "gu");
const UNFINISHED = new RegExp(`${BEFORE}@([A-Za-z0-9_]*(?::[A-Za-z0-9_-]*)?)$`, "u");

/** All handles in a text. The text must not contain code. */
export const handlesIn = (text: string): Handle[] =>
  Array.from(text.matchAll(HANDLE), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
    username: (match[1] ?? "").toLowerCase(),
  }));

/** The handle at the end of a text that is being typed. Its username may still be empty. */
export function handleAtEnd(text: string): Handle | null {
  const match = UNFINISHED.exec(text);
  if (!match) return null;
  return { start: match.index, end: text.length, username: (match[1] ?? "").toLowerCase() };
}
