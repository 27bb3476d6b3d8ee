import { isReservedName } from "@parley/protocol";

const LONGEST = 32;

/** The username that is nearest to what an issuer calls somebody: `Ada.L@example.com` gives `ada_l`. */
export function usernameFrom(claim: string): string {
  const [local = ""] = claim.slice(0, 256).split("@");
  const name = local
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .slice(0, LONGEST)
    .replace(/^_+|_+$/g, "");
  return name.length < 2 ? "user" : name;
}

/** The wish itself, and then with a number at its end; a reserved name is never given as it is. */
export function* usernameCandidates(wish: string): Generator<string> {
  if (!isReservedName(wish)) yield wish;
  for (let number = 2; ; number++) {
    const suffix = `_${number}`;
    yield wish.slice(0, LONGEST - suffix.length) + suffix;
  }
}
