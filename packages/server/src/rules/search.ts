const BEFORE = 40;
const LENGTH = 160;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

/** The words of a search query, in lowercase; the last may be the beginning of one. */
export const searchWords = (query: string): string[] =>
  (query.toLowerCase().match(WORD) ?? []).slice(0, 16);

/** Without case and accents, as the store compares. */
export const fold = (word: string) => word.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** All words of a text, as they are compared. */
export const foldedWords = (text: string): string[] => fold(text).match(WORD) ?? [];

/** An excerpt around the first word found, with everything that matched between `**`. */
export function snippet(content: string, words: readonly string[]): string {
  const text = content.replace(/\s+/g, " ").trim();
  const wanted = words.map(fold);
  const matches = (word: string) => wanted.some((each) => fold(word).startsWith(each));
  const first = [...text.matchAll(WORD)].find(([word]) => matches(word))?.index ?? -1;
  const from = first <= BEFORE ? 0 : wordStart(text, first - BEFORE);
  const to = from + LENGTH >= text.length ? text.length : wordStart(text, from + LENGTH);
  const marked = text
    .slice(from, to)
    .trim()
    .replace(WORD, (word) => (matches(word) ? `**${word}**` : word));
  return `${from > 0 ? "…" : ""}${marked}${to < text.length ? "…" : ""}`;
}

function wordStart(text: string, from: number): number {
  const space = text.indexOf(" ", from);
  const at = space === -1 || space > from + 40 ? from : space + 1;
  // Never between the halves of a surrogate pair.
  return /[\udc00-\udfff]/.test(text[at] ?? "") ? at + 1 : at;
}
