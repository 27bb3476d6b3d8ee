/** How text that people or tools chose is shown, so that it cannot pass for something else. */

/** The limit for titles. Names are shorter. */
const MAX_QUOTED_CHARACTERS = 128;
/** Control, format and line-separating characters. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * A name that a person chose, as a JSON string of bounded length on one line, so that a model can
 * tell it from instructions.
 */
export function quoteName(name: string): string {
  const characters = [...name];
  const isLong = characters.length > MAX_QUOTED_CHARACTERS;
  const shown = isLong ? `${characters.slice(0, MAX_QUOTED_CHARACTERS).join("")}…` : name;
  return JSON.stringify(shown).replaceAll(INVISIBLE, escapeCharacter);
}

/** The end of a name that tells its type. */
const EXTENSION = /\.[\p{L}\p{N}]{1,10}$/u;

/**
 * A file's name for a field of its own, where it needs no quotes: of bounded length, on one line, with
 * its extension.
 */
export function plainName(name: string): string {
  const visible = name.replaceAll(INVISIBLE, "\ufffd");
  const characters = [...visible];
  if (characters.length <= MAX_QUOTED_CHARACTERS) return visible;
  return `${characters.slice(0, MAX_QUOTED_CHARACTERS).join("")}…${EXTENSION.exec(visible)?.[0] ?? ""}`;
}

/**
 * Characters that show nothing, change the order of others, or are not assigned. A variation selector
 * after a pictograph shows: it makes an emoji.
 */
const HIDDEN = String.raw`(?<!\p{Extended_Pictographic})\ufe0f|(?!\ufe0f)[\x7f-\x9f\p{Cf}\p{Cn}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1d159}]`;
/** All spaces but the common one look like it, or like nothing. */
const HIDDEN_OR_SPACE = new RegExp(String.raw`${HIDDEN}|(?! )\p{Zs}`, "gu");
/** Not what joins letters of some scripts, and emoji. */
const HIDDEN_IN_TEXT = new RegExp(String.raw`(?![\u200c\u200d])(?:${HIDDEN})`, "gu");

/** JSON with the characters in its strings as escapes that nobody would see, or take for others. */
export const visibleJson = (value: unknown): string =>
  JSON.stringify(value, null, 2).toWellFormed().replaceAll(HIDDEN_OR_SPACE, escapeCharacter);

/** Text with hidden characters as escapes. */
export const visibleText = (text: string): string =>
  text.toWellFormed().replaceAll(HIDDEN_IN_TEXT, escapeCharacter);

const escapeCharacter = (character: string) =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

const LINE_BREAK = /\r\n?|[\n\v\f\u0085\u2028\u2029]/g;

/** Indents every line but the first, so that no line can pass for a message of someone else. */
export const indentLines = (text: string) => text.replaceAll(LINE_BREAK, "\n  ");
