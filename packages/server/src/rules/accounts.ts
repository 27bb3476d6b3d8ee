import type { Account } from "@parley/protocol";

/** An account with the fields that clients do not see. */
export interface AccountRecord extends Account {
  readonly id: number;
  /** Set for agents. */
  readonly owner_id: number | null;
  /** Set for agents. */
  readonly provider: string | null;
  /** Set while an operator has suspended the account. */
  readonly suspended_at: number | null;
  /** Set once the account, or the person whom it belongs to, is erased. */
  readonly erased_at: number | null;
}

/**
 * The viewer id that no account has. Views for it show nothing that differs between viewers, such as
 * a viewer's own reactions: they are what events carry.
 */
export const NOBODY = -1;

/** The id of the person whose limits hold for an account: its own, or that of the agent's owner. */
export const personOf = ({ id, owner_id }: Pick<AccountRecord, "id" | "owner_id">): number =>
  owner_id ?? id;

/** What is read of an account that clients see. */
export type AccountRow = Account & { readonly erased_at?: number | null };

/** An account without the fields that clients do not see. */
export const publicAccount = (account: AccountRow): Account => ({
  username: account.username,
  kind: account.kind,
  display_name: account.display_name,
  version: account.version,
  ...(account.erased_at != null && { deleted: true as const }),
});
