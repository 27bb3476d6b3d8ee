import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { checkFailures, countFailure } from "../calls/throttles.ts";
import {
  checkPasswordSignIn,
  checkStrength,
  createPasswordReset,
  resetUrl,
  usablePasswordReset,
} from "../domain/passwords.ts";
import { replacePassword } from "../domain/sessions.ts";
import { productUser } from "../domain/users.ts";
import { conflict, type Failure, notFound } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import { actorOf } from "../security/caller.ts";
import { isOperator } from "../security/operators.ts";

type Needs = "config" | "store" | "passwords" | "signInThrottle" | "audit" | "throttles";
export const passwordResets = createResource<Needs>();

passwordResets.audited(operations.createPasswordReset, async (tx, record, context, user) => {
  const { config, origin } = context;
  const account = await productUser(tx, user);
  if (await isOperator(tx, account, config.operators)) {
    throw conflict("the password of an operator is reset with parley users reset");
  }
  const created = await createPasswordReset(tx, record, account, actorOf(context));
  return { url: resetUrl(origin.base ?? "", created), expires_at: iso(created.expires_at) };
});

passwordResets.handle(operations.getPasswordReset, async (context, { token }) => {
  const { account, expires_at } = await usable(context, token);
  return { username: account.username, expires_at: iso(expires_at) };
});

passwordResets.handle(operations.resetPassword, async (context, { token, new_password }) => {
  const { audit, passwords, signInThrottle, origin } = context;
  const { account } = await usable(context, token);
  const { username } = account;
  context.about(username);
  checkStrength("new_password", new_password, username);
  const hash = await passwords.rehash(new_password, origin.network);
  const isSet = await audit.write(async (tx, record) => {
    await tx.lockCredentials(account.id);
    // Hashing takes a while, in which the link may have been used.
    if (!(await usablePasswordReset(tx, token))) return false;
    const sessions_ended = await replacePassword(tx, account, hash);
    await record("password_reset", { account: username, origin, sessions_ended });
    return true;
  });
  if (!isSet) throw refused(context);
  signInThrottle.passwordReset(username, origin.network);
});

/** Throws the same failure for every token that does not work, and `rate_limited` after many of them. */
async function usable(context: Context<Needs, undefined>, token: string) {
  const { config, store } = context;
  checkPasswordSignIn(config);
  checkFailures(context, "reset_tokens");
  const found = await store.read((tx) => usablePasswordReset(tx, token));
  if (!found) throw refused(context);
  return found;
}

function refused(context: Context<Needs, undefined>): Failure {
  const { audit, origin } = context;
  countFailure(context, "reset_tokens");
  audit.recordOnce("password_reset_refused", origin.network, { origin });
  return notFound("reset link that works with this token");
}
