import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { toast } from "../lib/toasts.ts";
import { Confirm } from "../ui/Confirm.tsx";
import { useOperatorAction } from "./calls.ts";

/** Suspends and restores accounts. `onChange` gets the changed account. */
export function useSuspension(onChange?: (account: OutputOf<"suspendAccount">) => void) {
  const client = useClient();
  const { busy, error, run } = useOperatorAction();
  const change = (username: string, suspended: boolean) =>
    void run(async () => {
      const call = suspended ? client.suspendAccount : client.restoreAccount;
      const account = await call({ username });
      onChange?.(account);
      toast(`@${username} is ${suspended ? "suspended" : "restored"}.`);
    });
  return { busy, error, change };
}

interface SuspensionProps {
  name: string;
  username: string;
  isSuspended: boolean;
  onClose: () => void;
  onConfirm: () => void;
}

/** Asks before an account is suspended or restored. */
export function Suspension(props: SuspensionProps) {
  const { name, username, isSuspended, onClose, onConfirm } = props;
  const confirm = () => {
    onClose();
    onConfirm();
  };
  if (isSuspended) {
    return (
      <Confirm
        title={`Restore ${name}?`}
        back="Keep suspended"
        action="Restore"
        look="primary"
        onBack={onClose}
        onConfirm={confirm}
      >
        @{username} can sign in again. Their sessions stay ended.
      </Confirm>
    );
  }
  return (
    <Confirm
      title={`Suspend ${name}?`}
      back="Cancel"
      action="Suspend"
      onBack={onClose}
      onConfirm={confirm}
    >
      @{username} is signed out everywhere at once and cannot sign in until you restore the account.
      Their agents stop. Their messages stay.
    </Confirm>
  );
}
