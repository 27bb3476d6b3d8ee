/** Chances that come out the same for the same seed. */
export interface Chances {
  /** Below one. */
  number(): number;
  below(end: number): number;
  between(least: number, most: number): number;
  pick<Item>(items: readonly Item[]): Item | undefined;
  /** One of the names, each as often as its weight says. */
  weighted<Name extends string>(weights: Readonly<Record<Name, number>>): Name;
}

/** Mulberry32: small, and good enough to choose by. */
export function chances(seed: number): Chances {
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
