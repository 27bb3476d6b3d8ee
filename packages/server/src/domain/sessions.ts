import type { SignedIn } from "@parley/protocol";
import { accountSuspended } from "../changes/change.ts";
import { publicAccount } from "../rules/accounts.ts";
import { isExternal } from "../rules/agents.ts";
import { suspended, unauthorized } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import { hashToken } from "../rules/tokens.ts";
import type { Origin } from "../security/caller.ts";
import { newDevice } from "../security/devices.ts";
import { newToken, type SessionLimits, sessionEnd } from "../security/tokens.ts";
import type { Vault } from "../security/vault.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";

interface SessionServices {
  readonly vault: Vault;
  readonly origin: Origin;
  readonly config: { readonly limits: SessionLimits };
}

interface SessionOptions {
  /** The device that the client has sent and keeps. Default: a new one. */
  readonly device?: string | undefined;
  /** Fingerprint of the network that the person signs in from. */
  readonly network?: string;
  /** When the session ends. Default: use extends it. */
  readonly fixedEnd?: number;
}

/**
 * Locks an account that a session is opened for, or that something is stored for: it may have changed
 * since the call authenticated. Units that suspend or erase it lock it too: they run before, and this
 * one is refused, or after, and end or delete what this one stores. Throws `suspended`, or
 * `unauthorized` if the account is deleted.
 */
export async function lockActive(tx: WriteTx, { id }: AccountRecord): Promise<void> {
  const { account } = await tx.lockCredentials(id);
  if (account.erased_at !== null) throw unauthorized("the account is deleted");
  if (account.suspended_at !== null) throw suspended();
}

/**
 * Opens a session of the account. Its access token is in the result only: the store has its hash.
 * Throws as `lockActive` does.
 */
export async function openSession(
  tx: WriteTx,
  account: AccountRecord,
  { vault, origin, config }: SessionServices,
  { device = newDevice(vault, account.id), network, fixedEnd }: SessionOptions,
): Promise<{ signedIn: SignedIn; session_id: string }> {
  await lockActive(tx, account);
  const session_id = Bun.randomUUIDv7();
  const access_token = newToken("person");
  const at = Date.now();
  const expires_at = fixedEnd ?? sessionEnd(at, at, config.limits);
  await tx.insertSession({
    id: session_id,
    token_hash: hashToken(access_token),
    account_id: account.id,
    user_agent: origin.user_agent,
    ...(network !== undefined && { network }),
    at,
    expires_at,
    fixed: fixedEnd !== undefined,
  });
  const signedIn = {
    access_token,
    expires_at: iso(expires_at),
    account: publicAccount(account),
    device,
  };
  return { signedIn, session_id };
}

/** Ends a session of the account. Returns false if there is none with this id, or it has ended already. */
export async function endSession(tx: WriteTx, id: string, account: AccountRecord) {
  const ended = await tx.endSession(id, account.id, Date.now());
  if (ended) tx.emit({ kind: "session_ended", session_id: id });
  return ended;
}

/** Ends all sessions of the account except `keptSession`. Returns how many it ended. */
export async function endSessions(tx: WriteTx, account: AccountRecord, keptSession?: string) {
  await tx.lockCredentials(account.id);
  const sessions = await tx.sessions(account.id, Date.now());
  const others = sessions.filter(({ id }) => id !== keptSession);
  for (const { id } of others) await endSession(tx, id, account);
  return others.length;
}

/**
 * Sets a password, and ends all sessions of the account except `keptSession`, and its reset link. Returns
 * how many sessions it ended.
 */
export async function replacePassword(
  tx: WriteTx,
  account: AccountRecord,
  hash: string,
  keptSession?: string,
): Promise<number> {
  await tx.lockCredentials(account.id);
  await tx.setPassword(account.id, hash);
  await tx.removePasswordReset(account.id);
  return endSessions(tx, account, keptSession);
}

/** Revokes tokens of external agents and closes their sockets, on every node. */
export async function revokeTokens(tx: WriteTx, ids: readonly string[]): Promise<void> {
  await tx.deleteAgentTokens(ids);
  for (const session_id of ids) tx.emit({ kind: "session_ended", session_id });
}

/** Closes the sockets of a person's external agents, on every node. */
export function closeAgentSockets(tx: WriteTx, owned: readonly AccountRecord[]): void {
  for (const { username } of owned.filter(isExternal)) {
    tx.emit(accountSuspended(username));
  }
}
