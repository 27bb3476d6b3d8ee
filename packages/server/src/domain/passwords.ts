import { badField, forbidden } from "../rules/failure.ts";
import { passwordWeakness } from "../security/common-passwords.ts";

/** Throws `forbidden` if nobody signs in with a password here. */
export function checkPasswordSignIn(config: { readonly passwordSignIn: boolean }): void {
  if (!config.passwordSignIn) throw forbidden("sign-in with a password is switched off");
}

/** Throws `bad_request` for a password that is easy to guess. */
export function checkStrength(field: string, password: string, username: string): void {
  const weakness = passwordWeakness(password, username);
  if (weakness) throw badField(field, weakness);
}
