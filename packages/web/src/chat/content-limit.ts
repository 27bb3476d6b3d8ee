/** Longest message in bytes of UTF-8. The contract's own constant would bring its validator along. */
export const MAX_CONTENT_BYTES = 32_768;

/** The counter appears when less than this is left: before that it would only distract. */
const COUNTER_BYTES = 2_048;

const utf8 = new TextEncoder();

/** How many bytes a text may still grow, negative when it is too long; null while it is far from it. */
export function bytesLeft(text: string): number | null {
  // A UTF-16 code unit takes at most three bytes, so short texts need no encoding.
  if (text.length * 3 <= MAX_CONTENT_BYTES - COUNTER_BYTES) return null;
  const left = MAX_CONTENT_BYTES - utf8.encode(text).length;
  return left <= COUNTER_BYTES ? left : null;
}
