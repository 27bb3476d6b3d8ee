import type { Access, Operation } from "@parley/protocol";
import { checkAllowed } from "../domain/policies.ts";
import { confirmationRequired, forbidden } from "../rules/failure.ts";
import { isSwitch } from "../rules/policies.ts";
import type { AgentCaller, AnyCaller, Caller } from "../security/caller.ts";
import { isOperator } from "../security/operators.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { Needs } from "./needs.ts";

/** Why a caller may not call operations of a level. */
const missingAccess: Record<Access, string> = {
  public: "this operation takes no token",
  session: "a service key calls this operation for a person, named in the header x-parley-as",
  agent: "only an agent may call this operation",
  service: "only a service key that acts for nobody may call this operation",
  operator: "only an operator may call this operation",
};

type Deciding = Pick<Needs, "store" | "config">;

/** Throws `forbidden` unless the caller has the operation's access level. */
export function checkAccess(
  deciding: Deciding,
  { access, agents }: Operation,
  caller: AnyCaller | AgentCaller,
): Awaitable<void> {
  if (caller.kind === "agent") {
    if (access === "agent" || agents) return;
    throw forbidden("an agent may not call this operation");
  }
  if (access === "session" && caller.kind !== "service") return;
  if (access === "service" && caller.kind === "service") return;
  if (access === "operator") {
    return caller.kind === "service" ? undefined : checkOperator(deciding, caller);
  }
  throw forbidden(missingAccess[access]);
}

/** Throws `forbidden` if the policy of the caller's person forbids the operation with this input. */
export function checkPolicy(
  { store, config }: Deciding,
  { policy }: Operation,
  caller: AnyCaller | AgentCaller | undefined,
  input: unknown,
): Awaitable<void> {
  if (policy === null || !caller || caller.kind === "service") return;
  const { field, input: governed } = policy;
  if (!isSwitch(field)) return;
  if (governed !== null && Reflect.get(input as object, governed) === undefined) return;
  return store.read((tx) => checkAllowed(tx, config, caller.account, field));
}

async function checkOperator({ store, config }: Deciding, { account }: Caller) {
  const allowed = await store.read((tx) => isOperator(tx, account, config.operators));
  if (!allowed) throw forbidden(missingAccess.operator);
}

const MINUTE_MS = 60_000;

/**
 * Throws `confirmation_required` for a person who has neither signed in nor confirmed their password in
 * the last `confirm_minutes`. Service keys act as their product decides.
 */
export async function checkConfirmed({ store, config }: Deciding, caller: AnyCaller) {
  const { confirm_minutes } = config.limits;
  if (caller.kind !== "session" || confirm_minutes === 0) return;
  const { confirmedAt, hasPassword } = await store.read(async (tx) => ({
    confirmedAt: await tx.sessionConfirmedAt(caller.session_id),
    hasPassword: (await tx.credentials(caller.account.username))?.password_hash != null,
  }));
  if (confirmedAt !== null && Date.now() - confirmedAt < confirm_minutes * MINUTE_MS) return;
  throw confirmationRequired(hasPassword && config.passwordSignIn ? "password" : "sign_in");
}
