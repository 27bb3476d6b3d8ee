import { useClient } from "@parley/client/react";
import { SaveRow } from "../agents/SaveRow.tsx";
import { useAction } from "../lib/action.ts";
import { concerns } from "../lib/errors.ts";
import { useSelf } from "../lib/me.ts";
import { TextField } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";

const WRONG = "This is not your current password.";

export function PasswordForm() {
  const { username } = useSelf();
  const client = useClient();
  const action = useAction();
  return (
    <Form
      error={action.error}
      explain={(error) => (concerns(error, "current_password") ? { current_password: WRONG } : {})}
      className="flex flex-col gap-4"
      onSubmit={async ({ raw }, form) => {
        const input = {
          current_password: raw("current_password"),
          new_password: raw("new_password"),
        };
        if (await action.run(() => client.changePassword(input))) form.reset();
      }}
    >
      {/* For password managers. */}
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
          hint="At least 8 characters. Your other devices are signed out."
        />
      </div>
      <SaveRow {...action} />
    </Form>
  );
}
