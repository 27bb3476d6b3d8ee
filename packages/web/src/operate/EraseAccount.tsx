import { useClient } from "@parley/client/react";
import { useState } from "react";
import { toast } from "../lib/toasts.ts";
import { Choice } from "../ui/Choice.tsx";
import { ConfirmUsername } from "../ui/ConfirmUsername.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { SubmitButtons } from "../ui/DialogButtons.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { useOperatorAction } from "./calls.ts";

const fates = [
  {
    value: "keep",
    label: "Keep messages",
    hint: "They stay readable, as those of a deleted account.",
  },
  {
    value: "delete",
    label: "Delete messages",
    hint: "Everything that the person and their agents wrote is deleted for everybody.",
  },
] as const;

interface EraseAccountProps {
  name: string;
  username: string;
  onClose: () => void;
  onErased: () => void;
}

/** Erases an account, after its username was typed: it cannot be restored. */
export function EraseAccount({ name, username, onClose, onErased }: EraseAccountProps) {
  const client = useClient();
  const { busy, error, run } = useOperatorAction();
  const [fate, setFate] = useState<"keep" | "delete">("keep");
  const erase = () =>
    void run(async () => {
      await client.eraseAccount({ username, messages: fate === "delete" });
      onClose();
      onErased();
      toast(`@${username} is erased.`);
    });
  return (
    <Dialog title={`Erase ${name}?`} onClose={onClose}>
      <Form
        error={error}
        onSubmit={erase}
        className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5"
      >
        <p className="text-md break-words text-ink-2">
          The account @{username} is deleted for good, with its agents and keys. It leaves all
          groups, and nobody else gets the username. It cannot be restored: to keep somebody out for
          a while, suspend the account instead.
        </p>
        <Choice label="Their messages" value={fate} options={fates} onChange={setFate} />
        <ConfirmUsername username={username} />
        <FormProblem />
        <SubmitButtons action="Erase" look="danger" busy={busy} onCancel={onClose} />
      </Form>
    </Dialog>
  );
}
