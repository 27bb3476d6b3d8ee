import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { checkFailures, countFailure, take } from "../calls/throttles.ts";
import { createPerson } from "../domain/accounts.ts";
import { checkPasswordSignIn, checkStrength, wrongPassword } from "../domain/passwords.ts";
import { confirmedFactor, kindOfCode, proveSecondFactor } from "../domain/second-factor.ts";
import { endSession, openSession, replacePassword } from "../domain/sessions.ts";
import {
  conflict,
  failure,
  forbidden,
  notFound,
  secondFactorRequired,
  suspended,
  unauthorized,
} from "../rules/failure.ts";
import { deviceId } from "../security/devices.ts";
import {
  lockOwnHash,
  ownAttempt,
  ownDetails,
  ownHash,
  verifyPassword,
  withdrawOnError,
} from "../security/own-password.ts";
import type { PendingAttempt } from "../security/sign-in-throttle.ts";
import { isSameSecret } from "../security/tokens.ts";
import type { AccountRecord, Credentials } from "../store/accounts.ts";

type Needs = "config" | "store" | "passwords" | "vault" | "signInThrottle" | "audit" | "throttles";
type Anonymous = Context<Needs, undefined>;
export const sessions = createResource<Needs>();

sessions.handle(operations.signUp, async (context, input) => {
  const { config, passwords, store, audit, origin } = context;
  checkPasswordSignIn(config);
  await checkPolicy(context, input.invite_code);
  checkStrength("password", input.password, input.username);
  // Whoever has such a name is an operator.
  if (config.operators.includes(input.username)) throw taken();
  if (await store.read((tx) => tx.account(input.username))) throw taken();
  take(context, "sign_ups");
  const password_hash = await passwords.hash(input.password, origin.network);
  const { username, display_name = username } = input;
  return audit.write(async (tx, record) => {
    const person = { username, display_name, password_hash };
    const account = await createPerson(tx, person, config.providers);
    if (!account) throw taken();
    const from = networkFingerprint(context, account, origin.network);
    const { signedIn, session_id } = await openSession(tx, account, context, { network: from });
    await record("sign_up", { account: username, origin, session_id });
    return signedIn;
  });
});

sessions.handle(operations.signIn, async (context, { username, password, device, code }) => {
  const { config, store, vault, signInThrottle, origin } = context;
  checkPasswordSignIn(config);
  const { network } = origin;
  const { found, isKnownNetwork } = await store.read(async (tx) => {
    const found = await tx.credentials(username);
    if (!found) return { found, isKnownNetwork: false };
    const { account } = found;
    const from = networkFingerprint(context, account, network);
    return { found, isKnownNetwork: await tx.signedInFrom(account.id, from) };
  });
  if (found) context.about(found.account.username);
  const knownDevice = found && device ? deviceId(vault, found.account.id, device) : null;
  const about = { username, network, isKnownNetwork, device: knownDevice };
  const attempt = signInThrottle.attempt(about);
  const isRight = await verifyPassword(attempt, context, password, found?.password_hash ?? null);
  // An unknown username is not logged: it may be a password typed into the wrong field.
  if (!isRight || !found) throw await refused(context, found?.account.username ?? null);
  const keptDevice = knownDevice ? device : undefined;
  return enter(context, { verified: found, attempt, device: keptDevice, code });
});

interface Entry {
  /** The account and the hash that the password was compared with. */
  readonly verified: Credentials;
  readonly attempt: PendingAttempt;
  readonly device: string | undefined;
  readonly code: string | undefined;
}

/**
 * Opens a session of an account whose password was right. Throws `suspended`,
 * `second_factor_required`, or `unauthorized` if the password has been changed since.
 */
async function enter(context: Anonymous, { verified, attempt, device, code }: Entry) {
  const { audit, vault, store, origin } = context;
  const { account } = verified;
  const details = { account: account.username, origin };
  const reading = store.read((tx) => confirmedFactor(tx, account.id));
  const factor = await withdrawOnError(attempt, reading);
  if (factor && code !== undefined && kindOfCode(code) === "totp") attempt.checksCode();
  const signingIn = audit.write(async (tx, record) => {
    // Comparing the hash takes a while, in which others may change the account.
    const current = await tx.lockCredentials(account.id);
    if (current.password_hash !== verified.password_hash) return "outdated";
    if (current.account.suspended_at !== null) return "suspended";
    const proof = await proveSecondFactor(tx, vault, account.id, code);
    if (proof === "missing" || proof === "wrong") return proof;
    const network = networkFingerprint(context, account, origin.network);
    const { signedIn, session_id } = await openSession(tx, account, context, { device, network });
    const how = { method: "password", ...(proof && { second_factor: proof }) } as const;
    await record("sign_in", { ...details, session_id, ...how });
    return signedIn;
  });
  const outcome = await withdrawOnError(attempt, signingIn);
  if (outcome === "outdated") throw await refused(context, account.username);
  if (outcome === "suspended") {
    attempt.succeeded();
    await audit.record("sign_in_failed", { ...details, reason: "suspended" });
    throw suspended();
  }
  if (outcome === "missing") {
    attempt.withdrawn();
    audit.recordOnce("second_factor_asked", `${account.username} ${origin.network}`, details);
    throw secondFactorRequired("send the code of your authenticator app, or a recovery code");
  }
  if (outcome === "wrong") {
    await audit.record("sign_in_failed", { ...details, reason: "second_factor" });
    throw secondFactorRequired("the code is wrong, or was used already");
  }
  attempt.succeeded();
  return outcome;
}

async function refused({ audit, origin }: Anonymous, account: string | null) {
  await audit.record("sign_in_failed", { account, origin });
  return unauthorized("the username or the password is wrong");
}

sessions.handle(operations.changePassword, async (context, input) => {
  const { passwords, audit, caller, origin } = context;
  const { account } = caller;
  const sessionId = caller.kind === "session" ? caller.session_id : undefined;
  const hash = await ownHash(context);
  if (hash === null) {
    throw forbidden(
      "this account has no password to change; whoever runs the service can set one with parley users reset",
    );
  }
  checkStrength("new_password", input.new_password, account.username);
  const details = ownDetails(context);
  const attempt = ownAttempt(context);
  const wrong = async () => {
    await audit.record("password_change_failed", details);
    return forbidden("the current password is wrong", { current_password: "is wrong" });
  };
  if (!(await verifyPassword(attempt, context, input.current_password, hash))) throw await wrong();
  attempt.succeeded();
  const newHash = await passwords.rehash(input.new_password, origin.network);
  const isChanged = await audit.write(async (tx, record) => {
    if (!(await lockOwnHash(tx, caller, hash))) return false;
    const sessions_ended = await replacePassword(tx, account, newHash, sessionId);
    await record("password_changed", { ...details, sessions_ended });
    return true;
  });
  if (!isChanged) throw await wrong();
});

sessions.handle(operations.confirmPassword, async (context, { password }) => {
  const { audit, caller, config } = context;
  if (caller.kind !== "session") throw forbidden("a service key has nothing to confirm");
  checkPasswordSignIn(config);
  const { session_id } = caller;
  const hash = await ownHash(context);
  if (hash === null) throw forbidden("this account has no password: sign in again");
  const attempt = ownAttempt(context);
  const isRight = await verifyPassword(attempt, context, password, hash);
  const isConfirmed =
    isRight &&
    (await audit.write(async (tx, record) => {
      if (!(await lockOwnHash(tx, caller, hash))) return false;
      await tx.confirmSession(session_id, Date.now());
      await record("password_confirmed", ownDetails(context));
      return true;
    }));
  if (!isConfirmed) throw await wrongPassword(context, "password_confirmation_failed");
  attempt.succeeded();
});

sessions.audited(operations.signOut, async (tx, record, { caller, origin }) => {
  if (caller.kind !== "session") {
    throw failure("bad_request", "a service key has no session to end");
  }
  const { account, session_id } = caller;
  await endSession(tx, session_id, account);
  const details = { account: account.username, origin, session_id };
  await record("session_ended", { ...details, reason: "signed_out" });
});

sessions.read(operations.getSessions, async (tx, { caller }) => {
  const sessions = await tx.sessions(caller.account.id, Date.now());
  const current = caller.kind === "session" ? caller.session_id : null;
  return { items: sessions.map((each) => ({ ...each, current: each.id === current })) };
});

sessions.audited(operations.revokeSession, async (tx, record, context, { session_id }) => {
  const { caller, origin } = context;
  const { account } = caller;
  if (!(await endSession(tx, session_id, account))) throw notFound("session");
  const details = { account: account.username, origin, session_id };
  await record("session_ended", { ...details, reason: "revoked" });
});

const taken = () => conflict("the username is taken");

/** Records and counts a wrong invite code against the network. Throws `rate_limited`. */
async function checkPolicy(context: Anonymous, inviteCode: string | undefined) {
  const { signUp: policy } = context.config;
  if (policy.kind === "closed") throw forbidden("sign-up is closed");
  if (policy.kind !== "invite") return;
  if (inviteCode !== undefined) {
    checkFailures(context, "invite_codes");
    if (policy.codes.some((code) => isSameSecret(code, inviteCode))) return;
    countFailure(context, "invite_codes");
    const { audit, origin } = context;
    await audit.record("sign_in_failed", { account: null, origin, reason: "invite_code" });
  }
  throw forbidden("sign-up needs a valid invite_code", { invite_code: "is not valid" });
}

const networkFingerprint = (
  { vault }: Pick<Context<Needs>, "vault">,
  { id }: AccountRecord,
  network: string,
) => vault.fingerprint(`${id} ${network}`);
