import { normalized } from "./normalized.ts";

/**
 * Rules for names that people choose for themselves and their groups: what is removed from them,
 * which are reserved, and which can be mistaken for another.
 */

/** Scripts in which zero-width joiners and non-joiners decide how letters connect. */
const JOINING =
  "\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Nkoo}\\p{scx=Mong}\\p{scx=Deva}\\p{scx=Beng}\\p{scx=Guru}\\p{scx=Gujr}\\p{scx=Orya}\\p{scx=Taml}\\p{scx=Telu}\\p{scx=Knda}\\p{scx=Mlym}\\p{scx=Sinh}\\p{scx=Khmr}";

/** Invisible characters with a meaning: in emoji, between joining letters, after ideographs. */
const MEANINGFUL = [
  "\\p{RGI_Emoji}",
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])`,
  "(?<=\\p{scx=Hani})[\\u{fe00}-\\u{fe02}\\u{e0100}-\\u{e01ef}]",
].join("|");

/**
 * Format and bidirectional controls, zero-width characters, fillers, blank characters, and separators
 * of lines and paragraphs.
 */
const INVISIBLE = "[\\p{Cf}\\p{Default_Ignorable_Code_Point}\\p{Zl}\\p{Zp}\\u2800]";

const meaningfulOrInvisible = new RegExp(`(${MEANINGFUL})|${INVISIBLE}`, "gv");

/**
 * A name as it is stored: normalized to NFC, without characters that are invisible or change the
 * direction of the text around them, with single spaces. Control characters are left in place.
 */
export const cleanName = (name: string): string =>
  normalized(name, "NFC")
    .replace(meaningfulOrInvisible, (_, meaningful: string | undefined) => meaningful ?? "")
    .replace(/\p{Zs}+/gu, " ")
    .trim();

/** Names that suggest the service, its staff, or everybody in a conversation. */
const RESERVED = new Set([
  "abuse",
  "admin",
  "administrator",
  "admins",
  "all",
  "anonymous",
  "api",
  "billing",
  "bot",
  "bots",
  "channel",
  "deleted",
  "everybody",
  "everyone",
  "help",
  "helpdesk",
  "here",
  "hostmaster",
  "mod",
  "moderator",
  "moderators",
  "mods",
  "no_reply",
  "nobody",
  "noreply",
  "null",
  "official",
  "operator",
  "operators",
  "parley",
  "postmaster",
  "root",
  "security",
  "staff",
  "superuser",
  "support",
  "sysadmin",
  "system",
  "undefined",
  "webhook",
  "webmaster",
]);

/** Letters of other scripts that look like Latin letters. */
const FOREIGN_LETTERS = lookalikes({
  a: "аɑα",
  b: "ьв",
  c: "сϲ",
  d: "ԁ",
  e: "еєε",
  g: "ɡ",
  h: "һнη",
  i: "іιı",
  j: "ј",
  k: "кκ",
  m: "м",
  n: "пո",
  o: "оοσօ",
  p: "рρ",
  q: "ԛ",
  r: "г",
  s: "ѕ",
  t: "тτ",
  u: "υսц",
  v: "ѵν",
  w: "ԝω",
  x: "хχ",
  y: "уγ",
});

/** Latin letters, digits and signs that look like another Latin letter. */
const LATIN_LOOKALIKES = lookalikes({ i: "l1|!", o: "0", s: "5$", z: "2" });

function lookalikes(letters: Record<string, string>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(letters).flatMap(([letter, others]) =>
      [...others].map((other) => [other, letter] as const),
    ),
  );
}

/** A name in lowercase Latin letters as far as possible, without accents. */
const latinized = (name: string): string =>
  [...normalized(cleanName(name), "NFKD").toLowerCase().replace(/\p{M}/gu, "")]
    .map((each) => FOREIGN_LETTERS.get(each) ?? each)
    .join("");

const withoutPunctuation = (name: string) => name.replace(/[\p{Z}\p{P}]/gu, "");

/** The reserved names, also as those of a team or an account, and with the service's name before. */
const reservedForms = new Set(
  [...RESERVED].flatMap((name) =>
    ["", "parley"].flatMap((before) =>
      ["", "team", "account"].map((after) => withoutPunctuation(before + name + after)),
    ),
  ),
);

/**
 * Whether a username or display name is reserved, or looks like a reserved name: in any case, character
 * width and script, with spaces and punctuation anywhere. Digits count as digits, and `l` is no `i`:
 * otherwise «Ali» would look like «all».
 */
export const isReservedName = (name: string): boolean =>
  reservedForms.has(withoutPunctuation(latinized(name)));

/** A normal form that is the same for names that can be mistaken for each other. */
export const nameSkeleton = (name: string): string =>
  withoutPunctuation(
    [...latinized(name)].map((each) => LATIN_LOOKALIKES.get(each) ?? each).join(""),
  ).replaceAll("rn", "m");

/**
 * The usernames of the accounts whose display name alone is ambiguous: it looks like the display name
 * or username of another of these accounts, or like a reserved name. Show their username beside it.
 */
export function deceptiveNames(
  accounts: Iterable<{ readonly username: string; readonly display_name: string }>,
): Set<string> {
  const byLook = new Map<string, Set<string>>();
  const all = [...accounts];
  for (const { username, display_name } of all) {
    for (const look of [nameSkeleton(username), nameSkeleton(display_name)]) {
      const owners = byLook.get(look) ?? new Set();
      byLook.set(look, owners.add(username));
    }
  }
  const deceptive = all.filter(({ username, display_name }) => {
    const look = nameSkeleton(display_name);
    const owners = byLook.get(look);
    return (owners !== undefined && owners.size > 1) || isReservedLook(look, username);
  });
  return new Set(deceptive.map(({ username }) => username));
}

/** Made on first use: compiling the pattern of `cleanName` takes longer than loading this file. */
let reservedLooks: ReadonlySet<string> | null = null;

function isReservedLook(look: string, username: string): boolean {
  reservedLooks ??= new Set([...RESERVED].map(nameSkeleton));
  return reservedLooks.has(look) && !RESERVED.has(username);
}
