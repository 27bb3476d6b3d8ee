/** As in the contract; importing it from there would add the validator to the bundle. */
export const MAX_CONTENT_BYTES = 32_768;

/** The counter is shown when fewer bytes than this are left. */
const COUNTER_BYTES = 2_048;

const utf8 = new TextEncoder();

/**
 * How many characters are left for a text, if they take as many bytes as those before; negative if it is
 * too long, null while it is far from the limit.
 */
export function charactersLeft(text: string): number | null {
  // A UTF-16 code unit takes at most three bytes, so short texts need no encoding.
  if (text.length * 3 <= MAX_CONTENT_BYTES - COUNTER_BYTES) return null;
  const bytes = utf8.encode(text).length;
  const left = MAX_CONTENT_BYTES - bytes;
  return left <= COUNTER_BYTES ? Math.floor((left * text.length) / bytes) : null;
}
