/**
 * Invisible characters and those that reorder text, which could make arguments look like others. Line
 * breaks and tabs stay.
 */
const HIDDEN = /[\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|(?![\n\t])\p{Cc}/gu;

/** Shows hidden characters as escapes, such as `\u{202e}`. */
export const visibleText = (text: string): string =>
  text.replace(HIDDEN, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`);
