const normalized = (text: string) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/**
 * How well a title matches a query, from best to worst: the whole title (5), its beginning (4), the
 * beginning of a word (3), the beginning of a keyword (2), a part of it (1), no match (0).
 */
export function rank(query: string, title: string, keywords: readonly string[] = []): number {
  const wanted = normalized(query);
  const text = normalized(title);
  if (text === wanted) return 5;
  if (text.startsWith(wanted)) return 4;
  if (text.split(/[^\p{L}\p{N}]+/u).some((word) => word.startsWith(wanted))) return 3;
  if (keywords.some((word) => word.startsWith(wanted))) return 2;
  return text.includes(wanted) ? 1 : 0;
}

/** The matching items, best first, otherwise in their order. */
export const ranked = <Item>(items: readonly Item[], rankOf: (item: Item) => number) =>
  items
    .map((item) => ({ item, rank: rankOf(item) }))
    .filter(({ rank: found }) => found > 0)
    .toSorted((one, other) => other.rank - one.rank);
