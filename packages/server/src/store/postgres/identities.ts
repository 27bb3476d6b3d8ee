import type { AccountRecord } from "../accounts.ts";
import type { IdentityReads, IdentityWrites } from "../identities.ts";
import { IDENTITY, INSERT_IDENTITY, UNLINKED_ACCOUNT } from "../shared/identities.ts";
import type { Methods } from "./unit.ts";

export const identityReads: Methods<keyof IdentityReads> = {
  identity: (unit, issuer, subject) => unit.get<AccountRecord>(IDENTITY, issuer, subject),
  unlinkedAccount: (unit, username) => unit.get<AccountRecord>(UNLINKED_ACCOUNT, username),
};

export const identityWrites: Methods<keyof IdentityWrites> = {
  insertIdentity: async (unit, { issuer, subject, account_id, at }) => {
    const { count } = await unit.write(INSERT_IDENTITY, issuer, subject, account_id, at);
    return count > 0;
  },
};
