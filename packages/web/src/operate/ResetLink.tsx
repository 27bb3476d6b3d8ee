import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useState } from "react";
import { describeError } from "../lib/errors.ts";
import { fullTime } from "../lib/time.ts";
import { ShownOnce } from "../session/ShownOnce.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons } from "../ui/DialogButtons.tsx";
import { Notice } from "../ui/Notice.tsx";
import { useOperatorAction } from "./calls.ts";

interface ResetLinkProps {
  name: string;
  username: string;
  onClose: () => void;
}

/** Makes a link with which somebody who forgot their password sets a new one, and shows it once. */
export function ResetLink({ name, username, onClose }: ResetLinkProps) {
  const client = useClient();
  const { busy, error, run } = useOperatorAction();
  const [made, setMade] = useState<OutputOf<"createPasswordReset"> | null>(null);
  const make = () => run(async () => setMade(await client.createPasswordReset({ username })));
  if (made) {
    return (
      <ShownOnce
        title={`Reset link for ${name}`}
        what="link"
        secret={made.url}
        note={`Give it to @${username} alone: whoever has it can sign in as them. It works once, until ${fullTime(made.expires_at)}, and is not shown again.`}
        onClose={onClose}
      />
    );
  }
  return (
    <Dialog title={`Make a reset link for ${name}?`} onClose={onClose}>
      <div className="flex min-h-0 flex-col gap-5 overflow-y-auto px-5 pb-5">
        <p className="text-md text-ink-2">
          With it, @{username} sets a new password, once and within a day, and is signed out
          everywhere else. An earlier link stops working. Make sure that it is them who asked.
        </p>
        {error !== null && <Notice>{describeError(error)}</Notice>}
        <DialogButtons>
          <Button data-autofocus onClick={onClose}>
            Cancel
          </Button>
          <Button look="primary" busy={busy} onClick={() => void make()}>
            Make the link
          </Button>
        </DialogButtons>
      </div>
    </Dialog>
  );
}
