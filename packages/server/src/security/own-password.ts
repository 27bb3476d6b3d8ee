import type { Store, WriteTx } from "../store/store.ts";
import { type Caller, type Origin, tokenOf } from "./caller.ts";
import type { Passwords } from "./passwords.ts";
import type { PendingAttempt, SignInThrottle } from "./sign-in-throttle.ts";

interface OwnServices {
  readonly store: Pick<Store, "read">;
  readonly signInThrottle: SignInThrottle;
  readonly passwords: Passwords;
  readonly caller: Caller;
  readonly origin: Origin;
}

/**
 * Begins an attempt of a caller to prove a secret of their own account; throws `rate_limited`. The
 * caller counts as a device: failed sign-ins of others do not make the owner of the account wait.
 */
export function ownAttempt({ signInThrottle, caller, origin }: Omit<OwnServices, "store">) {
  const { username } = caller.account;
  const device =
    caller.kind === "session" ? `session ${caller.session_id}` : `service key ${caller.key.name}`;
  const { network } = origin;
  return signInThrottle.attempt({ username, network, isKnownNetwork: true, device });
}

/** What the audit log says of such an attempt. */
export const ownDetails = ({ caller, origin }: Pick<OwnServices, "caller" | "origin">) => ({
  account: caller.account.username,
  origin,
  ...tokenOf(caller),
});

/** The hash of the caller's password; null if the account has none. */
export async function ownHash({ store, caller }: Pick<OwnServices, "store" | "caller">) {
  const known = await store.read((tx) => tx.credentials(caller.account.username));
  return known?.password_hash ?? null;
}

/**
 * Whether the caller's password still has this hash; it cannot change before the unit of work ends.
 * Comparing a password takes a while, in which another call may change it.
 */
export async function lockOwnHash(tx: WriteTx, { account }: Caller, hash: string | null) {
  return (await tx.lockCredentials(account.id)).password_hash === hash;
}

/**
 * Withdraws the attempt when what decides on it fails: the hashing queue is full, or the database
 * cannot be reached. A wrong password or code is a result, not an error.
 */
export const withdrawOnError = <Result>(attempt: PendingAttempt, decision: Promise<Result>) =>
  decision.catch((error) => {
    attempt.withdrawn();
    throw error;
  });

export const verifyPassword = (
  attempt: PendingAttempt,
  { passwords, origin }: Pick<OwnServices, "passwords" | "origin">,
  password: string,
  hash: string | null,
): Promise<boolean> => withdrawOnError(attempt, passwords.verify(password, hash, origin.network));
