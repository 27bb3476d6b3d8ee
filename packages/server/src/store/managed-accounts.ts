import type { AccountRecord, Metadata } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** Accounts of people as operators see them. */
export interface ManagedAccountReads {
  /** Ordered by username. */
  managedAccounts(query: ManagedAccountQuery): Awaitable<ManagedAccountRecord[]>;
}

export interface ManagedAccountWrites {
  /** Suspends an account, or with null restores it. Returns false when nothing changed. */
  setSuspended(accountId: number, at: number | null): Awaitable<boolean>;
}

export interface ManagedAccountQuery {
  /** Return only people with a name that begins with it, as in `findAccounts`, or with this external id. */
  query?: string | undefined;
  /** Return only this person. */
  username?: string | undefined;
  /** Return only suspended people, or only others. */
  suspended?: boolean | undefined;
  /** Return only usernames after this one. */
  after?: string | undefined;
  limit: number;
}

export interface ManagedAccountRecord extends AccountRecord {
  readonly external_id: string | null;
  readonly metadata: Metadata | null;
  readonly created_at: number;
  /** When a session of the account was last used. */
  readonly last_used_at: number | null;
  /** Whether `operators` has it. */
  readonly is_operator: boolean;
}
