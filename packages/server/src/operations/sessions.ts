import { operations } from "@parley/protocol";
import { createPerson } from "../domain/accounts.ts";
import { endSession, openSession, replacePassword } from "../domain/sessions.ts";
import { bind, type Context, type Services } from "../operation.ts";
import {
  badField,
  conflict,
  Failure,
  forbidden,
  notFound,
  suspended,
  unauthorized,
} from "../rules/failure.ts";
import { tokenOf } from "../security/caller.ts";
import { passwordWeakness } from "../security/common-passwords.ts";
import { deviceId } from "../security/devices.ts";
import type { PendingAttempt } from "../security/sign-in-throttle.ts";
import type { AccountRecord } from "../store/accounts.ts";

const signUp = bind(operations.signUp, async (context, input) => {
  const { config, passwords, store, signUps, security, origin } = context;
  checkPasswordSignIn(config);
  checkPolicy(config.signUp, input.invite_code);
  checkStrength("password", input.password, input.username);
  if (await store.read((tx) => tx.account(input.username))) throw taken();
  signUps.take(origin.network);
  const password_hash = await passwords.hash(input.password, origin.network);
  const { username, display_name = username } = input;
  return security.write(async (tx, record) => {
    const person = { username, display_name, password_hash };
    const account = await createPerson(tx, person, config.providers);
    if (!account) throw taken();
    const from = networkFingerprint(context, account, origin.network);
    const { signedIn, session_id } = await openSession(tx, account, context, { network: from });
    await record("sign_up", { account: username, origin, session_id });
    return signedIn;
  });
});

const signIn = bind(operations.signIn, async (context, { username, password, device }) => {
  const { config, passwords, store, vault, signInThrottle, security, origin } = context;
  checkPasswordSignIn(config);
  const { network } = origin;
  const { found, isKnownNetwork } = await store.read(async (tx) => {
    const found = await tx.credentials(username);
    if (!found) return { found, isKnownNetwork: false };
    const { account } = found;
    const from = networkFingerprint(context, account, network);
    return { found, isKnownNetwork: await tx.signedInFrom(account.id, from) };
  });
  const knownDevice = found && device ? deviceId(vault, found.account.id, device) : null;
  const attempt = signInThrottle.attempt({
    username,
    network,
    isKnownNetwork,
    device: knownDevice,
  });
  const isRight = await passwords
    .verify(password, found?.password_hash ?? null, network)
    .catch(withdraw(attempt));
  if (!isRight || !found) {
    // An unknown username is not logged: it may be a password typed into the wrong field.
    await security.record("sign_in_failed", { account: found?.account.username ?? null, origin });
    throw unauthorized("the username or the password is wrong");
  }
  attempt.succeeded();
  const { account } = found;
  if (account.suspended_at !== null) {
    const reason = "suspended";
    await security.record("sign_in_failed", { account: account.username, origin, reason });
    throw suspended();
  }
  return security.write(async (tx, record) => {
    const { signedIn, session_id } = await openSession(tx, account, context, {
      device: knownDevice ? device : undefined,
      network: networkFingerprint(context, account, network),
    });
    const details = { account: account.username, origin, session_id };
    await record("sign_in", { ...details, method: "password" });
    return signedIn;
  });
});

const changePassword = bind(operations.changePassword, async (context, input) => {
  const { passwords, store, signInThrottle, security, caller, origin } = context;
  const { account } = caller;
  const { network } = origin;
  const { username } = account;
  const sessionId = caller.kind === "session" ? caller.session_id : undefined;
  checkStrength("new_password", input.new_password, username);
  const details = { account: username, origin, ...tokenOf(caller) };
  const known = await store.read((tx) => tx.credentials(username));
  // The caller counts as a device: failed sign-ins of others do not make the account's owner wait.
  const device =
    caller.kind === "session" ? `session ${sessionId}` : `service key ${caller.key.name}`;
  const attempt = signInThrottle.attempt({ username, network, isKnownNetwork: true, device });
  const isRight = await passwords
    .verify(input.current_password, known?.password_hash ?? null, network)
    .catch(withdraw(attempt));
  if (!isRight) {
    await security.record("password_change_failed", details);
    throw forbidden("the current password is wrong");
  }
  attempt.succeeded();
  const hash = await passwords.rehash(input.new_password, network);
  await security.write(async (tx, record) => {
    const sessions_ended = await replacePassword(tx, account, hash, sessionId);
    await record("password_changed", { ...details, sessions_ended });
  });
});

const signOut = bind(operations.signOut, async ({ security, caller, origin }) => {
  if (caller.kind !== "session") {
    throw new Failure("bad_request", "bad request: a service key has no session to end");
  }
  const { account, session_id } = caller;
  const details = { account: account.username, origin, session_id };
  await security.write(async (tx, record) => {
    await endSession(tx, session_id, account);
    await record("session_ended", { ...details, reason: "signed_out" });
  });
});

const getSessions = bind(operations.getSessions, async ({ store, caller }) => {
  const sessions = await store.read((tx) => tx.sessions(caller.account.id, Date.now()));
  const current = caller.kind === "session" ? caller.session_id : null;
  return { items: sessions.map((each) => ({ ...each, current: each.id === current })) };
});

const revokeSession = bind(operations.revokeSession, async (context, { session_id }) => {
  const { security, caller, origin } = context;
  const { account } = caller;
  const details = { account: account.username, origin, session_id };
  await security.write(async (tx, record) => {
    if (!(await endSession(tx, session_id, account))) throw notFound("session");
    await record("session_ended", { ...details, reason: "revoked" });
  });
});

export const sessions = [signUp, signIn, changePassword, signOut, getSessions, revokeSession];

const taken = () => conflict("the username is taken");

function checkStrength(field: string, password: string, username: string): void {
  const weakness = passwordWeakness(password, username);
  if (weakness) throw badField(field, weakness);
}

function checkPasswordSignIn({ passwordSignIn }: Context["config"]): void {
  if (!passwordSignIn) throw forbidden("sign-in with a password is switched off");
}

function checkPolicy(policy: Context["config"]["signUp"], inviteCode: string | undefined): void {
  if (policy.kind === "closed") throw forbidden("sign-up is closed");
  if (policy.kind === "invite" && !policy.codes.includes(inviteCode ?? "")) {
    throw forbidden("sign-up needs a valid invite_code");
  }
}

/** Uncounts an attempt whose password was not checked, because the hashing queue was full. */
const withdraw =
  (attempt: PendingAttempt) =>
  (error: unknown): never => {
    attempt.withdrawn();
    throw error;
  };

const networkFingerprint = ({ vault }: Services, { id }: AccountRecord, network: string) =>
  vault.fingerprint(`${id} ${network}`);
