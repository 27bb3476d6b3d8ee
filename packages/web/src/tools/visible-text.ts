/**
 * Invisible and blank characters and those that reorder text, which could make arguments look like
 * others. Line breaks, tabs and common spaces stay, and the variation selector of an emoji.
 */
const HIDDEN =
  /(?<!\p{Extended_Pictographic})\ufe0f|(?!\ufe0f)[\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]|(?! )\p{Zs}|(?![\n\t])\p{Cc}/gu;

/** Shows hidden characters as escapes, such as `\u{202e}`. */
export const visibleText = (text: string): string =>
  text.replace(HIDDEN, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`);
