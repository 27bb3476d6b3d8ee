import { once } from "../rules/once.ts";
import list from "./common-passwords.txt";

/** Built on first use: most commands of the program do not need it. */
const common = once(() => new Set(list.split("\n").filter((line) => !line.startsWith("#"))));

/** Longer patterns are not among the passwords that attackers try first. */
const MAX_PATTERN_LENGTH = 32;

/** Sequences of neighbouring keys, letters or digits, in both directions. */
const RUNS = [
  "abcdefghijklmnopqrstuvwxyz",
  "01234567890123456789",
  "qwertyuiop",
  "asdfghjkl",
  "zxcvbnm",
  "qwertzuiop",
  "yxcvbnm",
  "azertyuiop",
  "qsdfghjklm",
  "1q2w3e4r5t6y7u8i9o0p",
  "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
  "q1w2e3r4t5y6u7i8o9p0",
].flatMap((run) => [run, [...run].reverse().join("")]);

/** Why a password is easy to guess, in words that follow the field's name; null if it is not. */
export function passwordWeakness(password: string, username: string): string | null {
  const typed = password.toLowerCase();
  if (typed === username || typed === [...username].reverse().join("")) {
    return "must not be the username";
  }
  if (common().has(typed)) return "is one of the most common passwords";
  if (typed.length <= MAX_PATTERN_LENGTH && isPattern(typed)) {
    return "must not be one pattern, such as a repetition or a row of keys";
  }
  return null;
}

/** Whether it is part of a sequence, or one to four characters repeated. */
function isPattern(typed: string): boolean {
  return RUNS.some((run) => run.includes(typed)) || /^(.{1,4}?)\1+$/su.test(typed);
}
