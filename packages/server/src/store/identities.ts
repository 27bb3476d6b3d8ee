import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** Links accounts to the subjects of OIDC issuers. */
export interface IdentityReads {
  /** The account that an OIDC issuer's subject is linked to. */
  identity(issuer: string, subject: string): Awaitable<AccountRecord | null>;
  /**
   * The person with that username, if they have neither a password nor an identity, and no product
   * has created them. Earlier versions identified OIDC accounts by username alone.
   */
  unlinkedAccount(username: string): Awaitable<AccountRecord | null>;
}

export interface IdentityWrites {
  /** Returns false, and changes nothing, when the subject is linked to an account already. */
  insertIdentity(identity: NewIdentity): Awaitable<boolean>;
}

export interface NewIdentity {
  issuer: string;
  subject: string;
  account_id: number;
  at: number;
}
