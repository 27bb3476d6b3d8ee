import { isReservedName } from "@parley/protocol";

const MAX_LENGTH = 32;

/** A valid username derived from an issuer's claim: `Ada.L@example.com` becomes `ada_l`. */
export function usernameFrom(claim: string): string {
  const [local = ""] = claim.slice(0, 256).split("@");
  const name = local
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "_")
    .slice(0, MAX_LENGTH)
    .replace(/^_+|_+$/g, "");
  return name.length < 2 ? "user" : name;
}

/** The requested username, unless it is reserved, and then variants with a number at the end. */
export function* usernameCandidates(requested: string): Generator<string> {
  if (!isReservedName(requested)) yield requested;
  for (let number = 2; ; number++) {
    const suffix = `_${number}`;
    yield requested.slice(0, MAX_LENGTH - suffix.length) + suffix;
  }
}
