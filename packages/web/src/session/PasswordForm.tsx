import { useClient } from "@parley/client/react";
import type { FormEvent } from "react";
import { SaveRow } from "../agents/SaveRow.tsx";
import { useAction } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { TextField } from "../ui/Field.tsx";

export function PasswordForm() {
  const { username } = useSelf();
  const client = useClient();
  const action = useAction();
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const given = new FormData(form);
    const text = (name: string) => String(given.get(name) ?? "");
    const input = {
      current_password: text("current_password"),
      new_password: text("new_password"),
    };
    if (await action.run(() => client.changePassword(input))) form.reset();
  };
  return (
    <form onSubmit={save} className="flex flex-col gap-4">
      {/* Tells a password manager whose password it is. */}
      <input type="hidden" name="username" autoComplete="username" value={username} />
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField
          label="Current password"
          name="current_password"
          type="password"
          required
          maxLength={1024}
          autoComplete="current-password"
        />
        <TextField
          label="New password"
          name="new_password"
          type="password"
          required
          minLength={8}
          maxLength={1024}
          autoComplete="new-password"
          hint="Your other devices are signed out."
        />
      </div>
      <SaveRow {...action} />
    </form>
  );
}
