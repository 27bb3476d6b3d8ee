import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** The people who may call operations of access `operator`. PARLEY_OPERATORS names further ones. */
export interface OperatorReads {
  isOperator(accountId: number): Awaitable<boolean>;
  /** Ordered by username. */
  operators(): Awaitable<AccountRecord[]>;
}

export interface OperatorWrites {
  /** Returns false, and changes nothing, when the account is an operator already. */
  addOperator(accountId: number, at: number): Awaitable<boolean>;
  /** Returns false when the account is not an operator. */
  removeOperator(accountId: number): Awaitable<boolean>;
}
