const BEFORE = 40;
const LENGTH = 160;

/** The words of a search query, in lowercase; the last may be the beginning of one. */
export const searchWords = (query: string): string[] =>
  (query.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? []).slice(0, 16);

/** An excerpt around the first word found, with everything that matched between `**`. */
export function snippet(content: string, words: readonly string[]): string {
  const text = content.replace(/\s+/g, " ").trim();
  const pattern = new RegExp(
    `(?<![\\p{L}\\p{N}])(${words.map((word) => `${word}[\\p{L}\\p{N}\\p{M}]*`).join("|")})`,
    "giu",
  );
  const first = text.search(pattern);
  const from = first <= BEFORE ? 0 : wordStart(text, first - BEFORE);
  const to = from + LENGTH >= text.length ? text.length : wordStart(text, from + LENGTH);
  const marked = text.slice(from, to).trim().replace(pattern, "**$1**");
  return `${from > 0 ? "…" : ""}${marked}${to < text.length ? "…" : ""}`;
}

function wordStart(text: string, from: number): number {
  const space = text.indexOf(" ", from);
  const at = space === -1 || space > from + 40 ? from : space + 1;
  // Never between the halves of a surrogate pair.
  return /[\udc00-\udfff]/.test(text[at] ?? "") ? at + 1 : at;
}
