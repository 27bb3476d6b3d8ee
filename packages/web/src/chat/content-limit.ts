/** As in the contract; importing it from there would add the validator to the bundle. */
export const MAX_CONTENT_BYTES = 32_768;

/** The counter is shown when fewer bytes than this are left. */
const COUNTER_BYTES = 2_048;

const utf8 = new TextEncoder();

/** Bytes left for a text, negative if it is too long; null while it is far from the limit. */
export function bytesLeft(text: string): number | null {
  // A UTF-16 code unit takes at most three bytes, so short texts need no encoding.
  if (text.length * 3 <= MAX_CONTENT_BYTES - COUNTER_BYTES) return null;
  const left = MAX_CONTENT_BYTES - utf8.encode(text).length;
  return left <= COUNTER_BYTES ? left : null;
}
