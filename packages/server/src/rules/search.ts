import { normalized } from "@parley/protocol";

const SNIPPET_CHARACTERS = 160;
const CHARACTERS_BEFORE_MATCH = 40;
/** A snippet begins and ends at a space, unless the next one is further away than this. */
const MAX_CHARACTERS_TO_SPACE = 40;
/** Characters in which a match is looked for at a time. */
const PIECE_CHARACTERS = 500;
const MAX_WORDS = 16;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

/** Runs of letters in scripts without spaces between words, in which any part of a text is found. */
const UNSPACED =
  /[[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]&&[\p{L}\p{N}\p{M}]]+/gv;

/** The words of a search query in lowercase. The last one also matches as the beginning of a word. */
export const searchWords = (query: string): string[] =>
  (query.toLowerCase().match(WORD) ?? []).slice(0, MAX_WORDS);

/** Removes case and accents, as both stores do to compare words. */
export const fold = (text: string) => normalized(text, "NFD").replace(/\p{M}/gu, "").toLowerCase();

export const foldedWords = (text: string): string[] => fold(text).match(WORD) ?? [];

/** Replaces every run in a script without spaces by its bigrams and its last letter, as words. */
export const spaced = (text: string): string =>
  text.replace(UNSPACED, (run) => ` ${bigrams(run).join(" ")} `);

/**
 * The consecutive words that a `spaced` text must contain to match a word of a query. `open`: the last
 * of them always matches as the beginning of a word, because it is a single letter of such a script.
 */
export function searchParts(word: string): { parts: string[]; open: boolean } {
  let open = false;
  const text = word.replace(UNSPACED, (run, at: number, whole: string) => {
    const found = bigrams(run);
    // Where the word goes on in another script, the run ends in the text too, with its last letter.
    const isAtEnd = at + run.length === whole.length;
    open ||= isAtEnd && found.length === 1;
    if (isAtEnd && found.length > 1) found.pop();
    return ` ${found.join(" ")} `;
  });
  return { parts: text.match(WORD) ?? [word], open };
}

/** Whether the parts follow each other in the words; the last may be the beginning of one. */
export function containsInOrder(
  words: readonly string[],
  parts: readonly string[],
  isLastOpen: boolean,
): boolean {
  // Not word by word, which takes long where almost all parts follow each other again and again.
  return ` ${words.join(" ")} `.includes(` ${parts.join(" ")}${isLastOpen ? "" : " "}`);
}

function bigrams(run: string): string[] {
  const letters = [...fold(run)];
  return letters.map((letter, place) => letter + (letters[place + 1] ?? ""));
}

/** An excerpt around the first match, with all matches between `**`. */
export function snippet(content: string, words: readonly string[]): string {
  const text = content.replace(/\s+/g, " ").trim();
  const wanted = words.map(fold);
  const matches = (word: string) => {
    const folded = fold(word);
    return wanted.some((each) => folded.startsWith(each));
  };
  const inside = new RegExp(words.join("|") || "$^", "giu");
  const mark = (word: string) => {
    if (word.search(UNSPACED) !== -1) return word.replace(inside, "**$&**");
    return matches(word) ? `**${word}**` : word;
  };
  const first = firstMarked(text, mark, new RegExp(wanted.join("|") || "$^", "u"));
  const from =
    first <= CHARACTERS_BEFORE_MATCH ? 0 : wordStart(text, first - CHARACTERS_BEFORE_MATCH);
  const end = from + SNIPPET_CHARACTERS;
  const to = end >= text.length ? text.length : wordStart(text, end);
  const marked = text.slice(from, to).trim().replace(WORD, mark);
  return `${from > 0 ? "…" : ""}${marked}${to < text.length ? "…" : ""}`;
}

/**
 * The index of the first match, or -1. Only the words of pieces in which `anywhere` matches are looked at
 * one by one, because folding each of them takes several times as long as folding the piece.
 */
function firstMarked(text: string, mark: (word: string) => string, anywhere: RegExp): number {
  for (let from = 0; from < text.length; ) {
    const space = text.indexOf(" ", from + PIECE_CHARACTERS);
    const to = space === -1 ? text.length : space;
    const piece = text.slice(from, to);
    if (anywhere.test(fold(piece))) {
      for (const { 0: word, index } of piece.matchAll(WORD)) {
        const at = mark(word).indexOf("**");
        if (at !== -1) return from + index + at;
      }
    }
    from = to;
  }
  return -1;
}

function wordStart(text: string, from: number): number {
  const space = text.indexOf(" ", from);
  const at = space === -1 || space > from + MAX_CHARACTERS_TO_SPACE ? from : space + 1;
  // Does not split a surrogate pair.
  return /[\udc00-\udfff]/.test(text[at] ?? "") ? at + 1 : at;
}
