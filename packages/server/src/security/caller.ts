import type { AccountRecord } from "../store/accounts.ts";

/** A person who calls with a token of their own. */
export interface SessionCaller {
  readonly kind: "session";
  readonly account: AccountRecord;
  readonly session_id: string;
}

/** A service key that calls for a person, with that person's rights and no others. */
export interface DelegateCaller {
  readonly kind: "delegate";
  readonly account: AccountRecord;
  readonly key: ServiceKey;
}

/** A service key that calls in its own right. */
export interface ServiceCaller {
  readonly kind: "service";
  readonly key: ServiceKey;
}

/** A program that calls as an external agent, with a token of that agent. */
export interface AgentCaller {
  readonly kind: "agent";
  readonly account: AccountRecord;
  readonly token_id: string;
}

/** The person whom a call is made by or for. */
export type Caller = SessionCaller | DelegateCaller;

/** Whoever takes part in conversations. */
export type Participant = Caller | AgentCaller;

export type AnyCaller = Caller | ServiceCaller;

/** A service key, as calls made with it are logged and counted. */
export interface ServiceKey {
  /** Unique among all keys, revoked ones included. */
  readonly name: string;
}

/** What the audit log says of the token of a call. */
export const tokenOf = (caller: AnyCaller) =>
  caller.kind === "session" ? { session_id: caller.session_id } : { service_key: caller.key.name };

/** Who made a call of access `operator`, for the audit log. */
export const actorOf = ({ caller, origin }: { caller: AnyCaller; origin: Origin }) => ({
  origin,
  ...(caller.kind !== "service" && { operator: caller.account.username }),
  ...(caller.kind !== "session" && { service_key: caller.key.name }),
});

/** The client that made a call. */
export interface Origin {
  readonly address: string;
  /** The key of limits per address (`networkOf`): one IPv6 client controls a whole /64. */
  readonly network: string;
  /** The address of the service as the client called it, such as `https://chat.example.com`. */
  readonly base?: string;
  /** Truncated, on one line (`boundedUserAgent`). */
  readonly user_agent: string | null;
  /** Set for calls over a socket. */
  readonly socket_id?: string;
}
