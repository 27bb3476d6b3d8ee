import { type InputOf, isReservedName, normalized } from "@parley/protocol";

const MAX_LENGTH = 32;

const FALLBACK = "user";

/** A valid username derived from another name: `Ada.L@example.com` becomes `ada_l`. */
export function usernameFrom(claim: string): string {
  const [local = ""] = claim.slice(0, 256).split("@");
  const name = normalized(local, "NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .slice(0, MAX_LENGTH)
    .replace(/^_+|_+$/g, "");
  return name.length < 2 ? FALLBACK : name;
}

/** Hexadecimal digits of the id's hash that make a username unique, fewest first. */
const SUFFIX_LENGTHS = [4, 8, 16];

/**
 * Usernames for a user of a product, best first: from the display name or the id, then with a suffix
 * that depends on the id only.
 */
export function productUsernames({ external_id, display_name = "" }: ProductUser): string[] {
  const names = [display_name, external_id].map(usernameFrom);
  const name = names.find((each) => each !== FALLBACK) ?? FALLBACK;
  const digest = new Bun.CryptoHasher("sha256").update(external_id).digest("hex");
  const variants = SUFFIX_LENGTHS.map((length) => {
    const suffix = `_${digest.slice(0, length)}`;
    return name.slice(0, MAX_LENGTH - suffix.length) + suffix;
  });
  return isReservedName(name) ? variants : [name, ...variants];
}

type ProductUser = Pick<InputOf<"upsertUsers">["users"][number], "external_id" | "display_name">;

/** The requested username, unless it is reserved, and then variants with a number at the end. */
export function* usernameCandidates(requested: string): Generator<string> {
  if (!isReservedName(requested)) yield requested;
  for (let number = 2; ; number++) {
    const suffix = `_${number}`;
    yield requested.slice(0, MAX_LENGTH - suffix.length) + suffix;
  }
}
