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
    const different = distance(wanted, letter);
    if (different > most || (found !== undefined && different === most)) continue;
    most = different;
    found = each;
  }
  return found;
}

const letters = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");

/** The Levenshtein distance. */
function distance(one: string, other: string): number {
  let above = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [row, letter] of [...one].entries()) {
    const current = [row + 1];
    for (const [at, against] of [...other].entries()) {
      const replaced = (above[at] ?? 0) + (letter === against ? 0 : 1);
      current.push(Math.min(replaced, (above[at + 1] ?? 0) + 1, (current[at] ?? 0) + 1));
    }
    above = current;
  }
  return above[other.length] ?? 0;
}
