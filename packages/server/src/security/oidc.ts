import { cleanName, isReservedName } from "@parley/protocol";
import type { JWTPayload } from "jose";
import { z } from "zod";
import type { OidcSettings } from "../config/oidc.ts";
import type { AccountRecord } from "../rules/accounts.ts";
import { unauthorized } from "../rules/failure.ts";
import type { WriteTx } from "../store/store.ts";
import type { Origin } from "./caller.ts";
import type { Issuer } from "./issuer.ts";

/** A person authenticated by the issuer. `issuer` and `subject` together identify them permanently. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  /** The issuer's username claim in lowercase, from which a username is derived. */
  readonly requestedName: string;
  /** Null if the token has no name that may be used as a display name. */
  readonly display_name: string | null;
}

/** Opens a session of an account in the unit of work of the sign-in. */
export type OpenSession<Result> = (
  tx: WriteTx,
  account: AccountRecord,
) => Promise<{ session_id: string; result: Result }>;

/** The accounts of identities. */
export interface OidcAccounts {
  /**
   * Signs in an identity with a session that `open` opens. Creates the account of an identity that has
   * none, and takes over the issuer's display name. Throws `suspended`.
   */
  signIn<Result>(identity: Identity, origin: Origin, open: OpenSession<Result>): Promise<Result>;
}

export type OidcTokens = ReturnType<typeof createOidcTokens>;

type ClaimSettings = Pick<OidcSettings, "issuer" | "usernameClaim">;

/** OpenID Connect limits a subject to 255 characters. */
const Subject = z
  .string()
  .min(1)
  .max(255)
  .refine((value) => value.isWellFormed() && !value.includes("\0"));

/** Tokens of the issuer that callers send as bearer tokens. */
export const createOidcTokens = (
  settings: ClaimSettings & { audience: string },
  issuer: Issuer,
) => ({
  /** Whether a bearer token has the form of a JWT. */
  recognises: (token: string) => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(token),
  /** Checks signature, issuer, audience and expiry. Throws `unauthorized` or `unavailable`. */
  async verify(token: string): Promise<{ identity: Identity; expires_at: number }> {
    const claims = await issuer.verify(token, settings.audience);
    return { identity: identityOf(claims, settings), expires_at: (claims.exp ?? 0) * 1000 };
  },
});

/** The person that verified claims are about. Throws `unauthorized` if a claim is missing. */
export function identityOf(claims: JWTPayload, settings: ClaimSettings): Identity {
  const subject = Subject.safeParse(claims.sub);
  if (!subject.success) throw unauthorized("the token has no valid sub");
  const { issuer, usernameClaim } = settings;
  if (!isText(claims[usernameClaim])) throw unauthorized(`the token has no ${usernameClaim}`);
  return {
    issuer,
    subject: subject.data,
    requestedName: claims[usernameClaim].toLowerCase(),
    display_name: shownName(claims.name),
  };
}

export const isText = (claim: unknown): claim is string =>
  typeof claim === "string" && claim.trim() !== "";

const NAME_CHARACTERS = 64;

/** The issuer's name for the person, in a form that `updateMe` would accept. */
function shownName(claim: unknown): string | null {
  if (typeof claim !== "string") return null;
  const line = claim
    .slice(0, 32 * NAME_CHARACTERS)
    .toWellFormed()
    .replace(/\p{Cc}/gu, " ");
  const name = [...cleanName(line)].slice(0, NAME_CHARACTERS).join("").trim();
  return name === "" || isReservedName(name) ? null : name;
}
