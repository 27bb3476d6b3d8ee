import { type InputOf, operations } from "@parley/protocol";
import { checkConfirmed } from "../calls/access.ts";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { eraseAccount } from "../domain/erasures.ts";
import { wrongPassword } from "../domain/passwords.ts";
import { badField } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import { checkNotLastOperator } from "../security/operators.ts";
import {
  lockOwnHash,
  ownAttempt,
  ownDetails,
  ownHash,
  verifyPassword,
} from "../security/own-password.ts";

type Needs = "config" | "exports" | "erasures" | "audit" | "store" | "signInThrottle" | "passwords";
export const ownData = createResource<Needs>();

ownData.handle(operations.exportMe, async (context) => {
  const { exports, audit, caller, origin } = context;
  const sessionId = caller.kind === "session" ? caller.session_id : undefined;
  const { path, expires_at } = exports.link(caller.account, sessionId);
  await audit.write((_, record) => record("account_exported", ownDetails(context)));
  return { url: `${origin.base ?? ""}${path}`, expires_at: iso(expires_at) };
});

ownData.handle(operations.deleteMe, async (context, input) => {
  const { audit, config, erasures, caller } = context;
  const { account } = caller;
  const hash = await confirm(context, input);
  const isErased = await audit.write(async (tx, record) => {
    if (!(await lockOwnHash(tx, caller, hash))) return false;
    await checkNotLastOperator(tx, account, config.operators);
    const { messages = false } = input;
    await eraseAccount(tx, record, account, { messages, details: ownDetails(context) });
    return true;
  });
  if (!isErased) throw await wrongPassword(context, "account_deletion_refused");
  erasures.wake();
});

/**
 * People confirm with their password, and those who have none with their username, soon after a
 * sign-in. Returns the hash of the password.
 */
async function confirm(context: Context<Needs>, { password, username }: InputOf<"deleteMe">) {
  const hash = await ownHash(context);
  if (hash === null) {
    if (username !== context.caller.account.username) {
      throw badField("username", "must be your own username, to confirm the deletion");
    }
    await checkConfirmed(context, context.caller);
    return hash;
  }
  if (password === undefined) throw badField("password", "is required");
  const attempt = ownAttempt(context);
  if (!(await verifyPassword(attempt, context, password, hash))) {
    throw await wrongPassword(context, "account_deletion_refused");
  }
  attempt.succeeded();
  return hash;
}
