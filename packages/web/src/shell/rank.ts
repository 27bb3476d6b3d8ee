const plain = (text: string) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/**
 * How well a title fits what is being typed, 0 if it does not: the title itself, its beginning, the
 * beginning of one of its words, one of its keywords, or letters somewhere in it.
 */
export function rank(query: string, title: string, keywords: readonly string[] = []): number {
  const asked = plain(query);
  const text = plain(title);
  if (text === asked) return 5;
  if (text.startsWith(asked)) return 4;
  if (text.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(asked))) return 3;
  if (keywords.some((word) => word.startsWith(asked))) return 2;
  return text.includes(asked) ? 1 : 0;
}

/** Those that fit, the best first; of equal ones the earlier. */
export const ranked = <Item>(items: readonly Item[], rankOf: (item: Item) => number) =>
  items
    .map((item) => ({ item, rank: rankOf(item) }))
    .filter(({ rank: found }) => found > 0)
    .toSorted((one, other) => other.rank - one.rank);
