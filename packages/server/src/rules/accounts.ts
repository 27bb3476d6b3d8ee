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
}

/** An account without the fields that clients do not see. */
export const publicAccount = ({ username, kind, display_name, version }: Account): Account => ({
  username,
  kind,
  display_name,
  version,
});
