import { codeOf, concerns } from "../lib/errors.ts";
import { useSelf } from "../lib/me.ts";
import type { FieldErrors } from "../lib/validation.ts";
import { TextField } from "../ui/Field.tsx";

/** The password of the person who is signed in. */
export function PasswordField() {
  const { username } = useSelf();
  return (
    <>
      {/* For password managers. */}
      <input type="hidden" name="username" autoComplete="username" value={username} />
      <TextField
        label="Your password"
        name="password"
        type="password"
        required
        maxLength={1024}
        autoComplete="current-password"
      />
    </>
  );
}

/** Which field the server refused. */
export function explainProof(error: unknown): FieldErrors {
  if (codeOf(error) !== "forbidden") return {};
  if (concerns(error, "code")) return { code: "This code is wrong, or was used already." };
  return concerns(error, "password") ? { password: "This is not your password." } : {};
}
