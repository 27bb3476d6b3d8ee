import { useClient } from "@parley/client/react";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { navigate } from "../lib/router.ts";
import { Choice } from "../ui/Choice.tsx";
import { ConfirmUsername } from "../ui/ConfirmUsername.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { SubmitButtons } from "../ui/DialogButtons.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { signInNotice } from "./client.ts";
import { explainProof, PasswordField } from "./proof.tsx";

const fates = [
  {
    value: "keep",
    label: "Keep my messages",
    hint: "Others can still read them, as those of a deleted account.",
  },
  {
    value: "delete",
    label: "Delete my messages",
    hint: "Everything that you and your agents wrote goes away for everybody.",
  },
] as const;

interface DeleteAccountProps {
  hasPassword: boolean;
  onClose: () => void;
}

/** Asks for the password, or for the username of somebody without one, and deletes the account. */
export function DeleteAccount({ hasPassword, onClose }: DeleteAccountProps) {
  const { username } = useSelf();
  const client = useClient();
  const { busy, error, run } = useAction();
  const [fate, setFate] = useState<"keep" | "delete">("keep");
  const erase = (proof: { password: string } | { username: string }) =>
    run(async () => {
      await client.deleteMe({ ...proof, messages: fate === "delete" });
      signInNotice.set("Your account is deleted.");
      navigate("/", { replace: true });
    });
  return (
    <Dialog title="Delete your account?" onClose={onClose}>
      <Form
        error={error}
        explain={explainProof}
        className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5"
        onSubmit={({ raw, text }) =>
          void erase(hasPassword ? { password: raw("password") } : { username: text("username") })
        }
      >
        <p className="text-md text-ink-2">
          You are signed out everywhere, leave all groups, and cannot come back to this account.
          Nobody else gets your username.
        </p>
        <Choice label="Your messages" value={fate} options={fates} onChange={setFate} />
        {hasPassword ? <PasswordField /> : <ConfirmUsername username={username} />}
        <FormProblem />
        <SubmitButtons action="Delete my account" look="danger" busy={busy} onCancel={onClose} />
      </Form>
    </Dialog>
  );
}
