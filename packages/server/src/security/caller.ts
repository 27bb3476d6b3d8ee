import type { AccountRecord } from "../store/accounts.ts";

/** The authenticated caller of an operation. */
export interface Caller {
  readonly account: AccountRecord;
  readonly session_id: string;
}

/** The client that made a call. */
export interface Origin {
  readonly address: string;
  /** The key of limits per address (`networkOf`): one IPv6 client controls a whole /64. */
  readonly network: string;
  /** Truncated, on one line (`boundedUserAgent`). */
  readonly user_agent: string | null;
  /** Set for calls over a socket. */
  readonly socket_id?: string;
}
