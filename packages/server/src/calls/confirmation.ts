import { confirmationRequired } from "../rules/failure.ts";
import type { AnyCaller } from "../security/caller.ts";
import type { Store } from "../store/store.ts";

const MINUTE_MS = 60_000;

export interface ConfirmationOptions {
  readonly store: Pick<Store, "read">;
  readonly config: {
    readonly passwordSignIn: boolean;
    readonly limits: { readonly confirm_minutes: number };
  };
}

/**
 * Throws `confirmation_required` for a person who has neither signed in nor confirmed their password in
 * the last `confirm_minutes`. Service keys act as their product decides.
 */
export async function checkConfirmed(
  { store, config }: ConfirmationOptions,
  caller: AnyCaller,
): Promise<void> {
  const { confirm_minutes } = config.limits;
  if (caller.kind !== "session" || confirm_minutes === 0) return;
  const { confirmedAt, hasPassword } = await store.read(async (tx) => ({
    confirmedAt: await tx.sessionConfirmedAt(caller.session_id),
    hasPassword: (await tx.credentials(caller.account.username))?.password_hash != null,
  }));
  if (confirmedAt !== null && Date.now() - confirmedAt < confirm_minutes * MINUTE_MS) return;
  throw confirmationRequired(hasPassword && config.passwordSignIn ? "password" : "sign_in");
}
