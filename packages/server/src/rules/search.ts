const BEFORE = 40;
const LENGTH = 160;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

/** Letters of scripts that put no space between words: what they write is found by any part of it. */
const UNSPACED =
  /[[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]&&[\p{L}\p{N}\p{M}]]+/gv;

/** The words of a search query, in lowercase; the last may be the beginning of one. */
export const searchWords = (query: string): string[] =>
  (query.toLowerCase().match(WORD) ?? []).slice(0, 16);

/** Without case and accents, as the store compares. */
export const fold = (word: string) => word.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** All words of a text, as they are compared. */
export const foldedWords = (text: string): string[] => fold(text).match(WORD) ?? [];

/** A text with every run of such letters as the pairs of neighbours in it, and its last letter. */
export const spaced = (text: string): string =>
  text.replace(UNSPACED, (run) => ` ${pairs(run).join(" ")} `);

/**
 * What has to stand in a spaced text, one after the other, for a word of a query to be found there;
 * `open` when the last of it may be the beginning of a longer one in any case.
 */
export function searchParts(word: string): { parts: string[]; open: boolean } {
  let open = false;
  const text = word.replace(UNSPACED, (run, at: number, whole: string) => {
    const found = pairs(run);
    if (found.length > 1) found.pop();
    else open ||= at + run.length === whole.length;
    return ` ${found.join(" ")} `;
  });
  return { parts: text.match(WORD) ?? [word], open };
}

function pairs(run: string): string[] {
  const letters = [...fold(run)];
  return letters.map((letter, place) => letter + (letters[place + 1] ?? ""));
}

/** An excerpt around the first word found, with everything that matched between `**`. */
export function snippet(content: string, words: readonly string[]): string {
  const text = content.replace(/\s+/g, " ").trim();
  const wanted = words.map(fold);
  const matches = (word: string) => wanted.some((each) => fold(word).startsWith(each));
  const inside = new RegExp(words.join("|") || "$^", "giu");
  const mark = (word: string) => {
    if (word.search(UNSPACED) !== -1) return word.replace(inside, "**$&**");
    return matches(word) ? `**${word}**` : word;
  };
  const found = [...text.matchAll(WORD)].find(([word]) => mark(word) !== word);
  const first = found ? found.index + mark(found[0]).indexOf("**") : -1;
  const from = first <= BEFORE ? 0 : wordStart(text, first - BEFORE);
  const to = from + LENGTH >= text.length ? text.length : wordStart(text, from + LENGTH);
  const marked = text.slice(from, to).trim().replace(WORD, mark);
  return `${from > 0 ? "…" : ""}${marked}${to < text.length ? "…" : ""}`;
}

function wordStart(text: string, from: number): number {
  const space = text.indexOf(" ", from);
  const at = space === -1 || space > from + 40 ? from : space + 1;
  // Never between the halves of a surrogate pair.
  return /[\udc00-\udfff]/.test(text[at] ?? "") ? at + 1 : at;
}
