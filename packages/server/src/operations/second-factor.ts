import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { wrongPassword } from "../domain/passwords.ts";
import {
  confirmedFactor,
  kindOfCode,
  replaceRecoveryCodes,
  secondFactorBinding,
  useAppCode,
  useCode,
} from "../domain/second-factor.ts";
import { endSessions } from "../domain/sessions.ts";
import { conflict, type Failure, forbidden, notFound } from "../rules/failure.ts";
import { isoOrNull } from "../rules/time.ts";
import type { Recorder } from "../security/audit-log.ts";
import {
  lockOwnHash,
  ownAttempt,
  ownDetails,
  ownHash,
  verifyPassword,
  withdrawOnError,
} from "../security/own-password.ts";
import { newSecret, otpauthUri } from "../security/second-factor.ts";
import type { PendingAttempt } from "../security/sign-in-throttle.ts";
import type { SecondFactorRecord } from "../store/second-factor.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

type Needs = "config" | "store" | "vault" | "audit" | "signInThrottle" | "passwords";
export const secondFactor = createResource<Needs>();

const ISSUER = "Parley";

secondFactor.read(operations.getSecondFactor, async (tx, { config, caller }) => {
  const { id, username } = caller.account;
  const at = (await tx.secondFactor(id))?.confirmed_at ?? null;
  const hash = (await tx.credentials(username))?.password_hash ?? null;
  return {
    available: config.passwordSignIn && hash !== null,
    enabled: at !== null,
    enabled_at: isoOrNull(at),
    recovery_codes_left: await tx.recoveryCodesLeft(id),
  };
});

secondFactor.handle(operations.beginSecondFactor, async (context, { password }) => {
  const { store, vault, caller, origin } = context;
  const { id, username } = caller.account;
  const attempt = ownAttempt(context);
  const hash = await checkPassword(context, attempt, password);
  attempt.succeeded();
  const secret = newSecret();
  const sealed = vault.seal(secret, secondFactorBinding(id));
  const factor = { account_id: id, secret: sealed, at: Date.now() };
  const isCurrent = await store.write(async (tx) => {
    if (!(await lockOwnHash(tx, caller, hash))) return false;
    if (!(await tx.beginSecondFactor(factor))) throw alreadyOn();
    return true;
  });
  if (!isCurrent) throw await wrongPassword(context, "second_factor_failed");
  const url = origin.base === undefined ? null : URL.parse(origin.base);
  const host = url === null ? "" : `@${url.hostname}`;
  return { secret, otpauth_uri: otpauthUri(secret, ISSUER, `${username}${host}`) };
});

secondFactor.handle(operations.confirmSecondFactor, async (context, { code }) => {
  const { store, audit, vault, caller } = context;
  const { account } = caller;
  checkUnconfirmed(await store.read((tx) => tx.secondFactor(account.id)));
  const attempt = ownAttempt(context);
  attempt.checksCode();
  const confirming = audit.write(async (tx, record) => {
    const factor = checkUnconfirmed(await tx.secondFactor(account.id));
    if (!(await useAppCode(tx, vault, factor, code))) return null;
    // Another one may have been begun since it was read: the code is not of that one.
    if (!(await tx.confirmSecondFactor({ ...factor, at: Date.now() }))) return null;
    const kept = caller.kind === "session" ? caller.session_id : undefined;
    const sessions_ended = await endSessions(tx, account, kept);
    await record("second_factor_added", { ...ownDetails(context), sessions_ended });
    return replaceRecoveryCodes(tx, account.id);
  });
  const codes = await withdrawOnError(attempt, confirming);
  if (codes === null) throw await wrongCode(context);
  attempt.succeeded();
  return { recovery_codes: codes };
});

secondFactor.handle(operations.renewRecoveryCodes, async (context, input) => {
  const { id } = context.caller.account;
  const recovery_codes = await withSecondFactor(context, input, async (tx, record) => {
    await record("recovery_codes_renewed", ownDetails(context));
    return replaceRecoveryCodes(tx, id);
  });
  return { recovery_codes };
});

secondFactor.handle(operations.removeSecondFactor, async (context, input) => {
  const { id } = context.caller.account;
  await withSecondFactor(context, input, async (tx, record) => {
    await tx.removeSecondFactor(id);
    await record("second_factor_removed", ownDetails(context));
  });
});

/** Runs a unit of work of a caller who proves both the password and the second factor. */
async function withSecondFactor<Result>(
  context: Context<Needs>,
  { password, code }: { password: string; code: string },
  unit: (tx: WriteTx, record: Recorder) => Promise<Result>,
): Promise<Result> {
  const { store, audit, vault, caller } = context;
  const { id } = caller.account;
  await store.read((tx) => ownFactor(tx, id));
  const attempt = ownAttempt(context);
  const hash = await checkPassword(context, attempt, password);
  if (kindOfCode(code) === "totp") attempt.checksCode();
  const proving = audit.write(async (tx, record) => {
    if (!(await lockOwnHash(tx, caller, hash))) return "outdated";
    const factor = await ownFactor(tx, id);
    return (await useCode(tx, vault, factor, code)) && { result: await unit(tx, record) };
  });
  const done = await withdrawOnError(attempt, proving);
  if (done === "outdated") throw await wrongPassword(context, "second_factor_failed");
  if (!done) throw await wrongCode(context);
  attempt.succeeded();
  return done.result;
}

/**
 * Returns the hash of the password. Throws `forbidden` for a wrong password, which stays counted in the
 * attempt.
 */
async function checkPassword(context: Context<Needs>, attempt: PendingAttempt, password: string) {
  const hash = await withdrawOnError(attempt, ownHash(context));
  if (hash === null) {
    attempt.withdrawn();
    throw forbidden("this account has no password: whoever signs it in decides on a second factor");
  }
  if (await verifyPassword(attempt, context, password, hash)) return hash;
  throw await wrongPassword(context, "second_factor_failed");
}

async function wrongCode(context: Context<Needs>): Promise<Failure> {
  const details = { ...ownDetails(context), reason: "second_factor" } as const;
  await context.audit.record("second_factor_failed", details);
  return forbidden("the code is wrong, or was used already", { code: "is wrong" });
}

async function ownFactor(tx: ReadTx, accountId: number) {
  const factor = await confirmedFactor(tx, accountId);
  if (!factor) throw notFound("second factor");
  return factor;
}

function checkUnconfirmed(factor: SecondFactorRecord | null): SecondFactorRecord {
  if (!factor) throw notFound("second factor; call beginSecondFactor before");
  if (factor.confirmed_at !== null) throw alreadyOn();
  return factor;
}

const alreadyOn = () => conflict("the second factor is on already; remove it first");
