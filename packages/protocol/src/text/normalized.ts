/** Unicode's stream-safe format (UAX 15) allows as many; no language needs more. */
const MOST_MARKS = 30;
const surplusMarks = new RegExp(`(\\p{M}{${MOST_MARKS}})\\p{M}+`, "gu");

/**
 * A text in a normal form, without the combining marks that follow 30 others. Normalizing sorts marks in
 * a time that grows with the square of how many follow each other: thousands would take seconds.
 */
export const normalized = (text: string, form: "NFC" | "NFD" | "NFKD"): string =>
  text.replace(surplusMarks, "$1").normalize(form);
