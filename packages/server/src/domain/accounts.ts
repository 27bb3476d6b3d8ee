import type { Account } from "@parley/protocol";

/** An account with what only the server knows of it. */
export interface AccountRecord extends Account {
  readonly id: number;
  readonly owner_id: number | null;
  readonly provider: string | null;
}

/** The public shape of an account, without what only the server knows. */
export const publicAccount = ({ username, kind, display_name, version }: Account): Account => ({
  username,
  kind,
  display_name,
  version,
});
