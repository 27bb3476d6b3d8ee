/** Letters and digits that read as a Latin letter, small or capital, by that letter. */
const shapes: Record<string, string> = {
  a: "аα",
  b: "ьвβ",
  c: "сϲ",
  d: "ԁ",
  e: "еε",
  h: "һнη",
  i: "іιıl1|",
  j: "ј",
  k: "кκ",
  m: "мμ",
  n: "п",
  o: "оο0",
  p: "рρ",
  s: "ѕ",
  t: "тτ",
  u: "υ",
  v: "ν",
  w: "ԝω",
  x: "хχ",
  y: "уγ",
  z: "ζ",
};

const latin = new Map(
  Object.entries(shapes).flatMap(([letter, all]) => [...all].map((each) => [each, letter])),
);

/** What is left of a name for somebody who reads in passing: names of one shape can be mistaken. */
export function shapeOf(name: string): string {
  const letters =
    name
      .normalize("NFKD")
      .toLowerCase()
      .match(/[\p{L}\p{N}|]/gu) ?? [];
  return letters.map((letter) => latin.get(letter) ?? letter).join("");
}

interface Named {
  username: string;
  display_name: string;
}

/** Usernames of those whose name alone could mean somebody else of the same list. */
export function mistakable(accounts: Iterable<Named>): Set<string> {
  const byShape = new Map<string, Set<string>>();
  for (const { username, display_name } of accounts) {
    const shape = shapeOf(display_name);
    byShape.set(shape, (byShape.get(shape) ?? new Set()).add(username));
  }
  return new Set([...byShape.values()].filter(({ size }) => size > 1).flatMap((all) => [...all]));
}
