/** ` Did you mean "start"?` if one of the names is close to the given one; otherwise empty. */
export function suggestion(given: string, names: readonly string[]): string {
  const [closest] = names
    .map((name) => ({ name, distance: editDistance(given, name) }))
    .filter(({ name, distance }) => distance <= Math.max(1, Math.floor(name.length / 3)))
    .sort((one, other) => one.distance - other.distance);
  return closest ? ` Did you mean "${closest.name}"?` : "";
}

/** How many letters must be added, removed or replaced to make one word of the other. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...one].entries()) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j++) {
      const replaced = (row[j] ?? 0) + (letter === other[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}

/** A name is similar if at most this part of its letters differs. */
const MAX_DIFFERENT = 0.3;

/** The most similar of these names, if one is similar: for the error of a call by a wrong name. */
export function similarName(name: string, names: Iterable<string>): string | undefined {
  const wanted = letters(name);
  let most = wanted.length * MAX_DIFFERENT;
  let found: string | undefined;
  for (const each of names) {
    const letter = letters(each);
    if (Math.abs(letter.length - wanted.length) > most) continue;
    const different = editDistance(wanted, letter);
    if (different > most || (found !== undefined && different === most)) continue;
    most = different;
    found = each;
  }
  return found;
}

const letters = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");
