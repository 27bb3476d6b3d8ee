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
 * JSON with the invisible characters in its strings as escapes: some of them change the order in which
 * the others are shown.
 */
export const visibleJson = (value: unknown): string =>
  JSON.stringify(value, null, 2)
    .toWellFormed()
    .replaceAll(/[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu, escapeCharacter);

/** Text with the same escapes, except for what joins letters of some scripts, and emoji. */
export const visibleText = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/(?![\u200c\u200d])[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/gu, escapeCharacter);

const escapeCharacter = (character: string) =>
  character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

const LINE_BREAK = /\r\n?|[\n\v\f\u0085\u2028\u2029]/g;

/** Indents every line but the first, so that no line can pass for a message of someone else. */
export const indentLines = (text: string) => text.replaceAll(LINE_BREAK, "\n  ");
