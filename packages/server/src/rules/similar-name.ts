import { editDistance } from "./suggestion.ts";

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
