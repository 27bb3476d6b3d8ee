import type { Account } from "@parley/protocol";

/** An account with what only the server knows of it. */
export interface AccountRecord extends Account {
  readonly id: number;
  readonly owner_id: number | null;
  readonly provider: string | null;
}
