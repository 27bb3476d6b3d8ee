/** A pseudo-random generator: the same seed gives the same numbers. */
export interface Random {
  /** From 0 to 1, exclusive. */
  number(): number;
  below(end: number): number;
  between(least: number, most: number): number;
  pick<Item>(items: readonly Item[]): Item | undefined;
  /** One of the names, with a probability proportional to its weight. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name;
}

/** Mulberry32. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;

  function number(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  const below = (end: number) => Math.floor(number() * end);
  return {
    number,
    below,
    between: (least, most) => least + number() * (most - least),
    pick: (items) => items[below(items.length)],
    weighted(weights) {
      const entries = Object.entries(weights) as [keyof typeof weights, number][];
      let left = number() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name;
      }
      throw new Error("there are no weights to choose by");
    },
  };
}
