import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { showError } from "../lib/errors.ts";
import { toast } from "../lib/toasts.ts";
import { Confirm } from "../ui/Confirm.tsx";

interface BlockPersonProps {
  account: Account;
  onClose: () => void;
}

/** Asks, then blocks a person. */
export function BlockPerson({ account, onClose }: BlockPersonProps) {
  const client = useClient();
  const { username, display_name } = account;
  const block = () => {
    onClose();
    client.blockUser({ username }).then(() => toast(`${display_name} is blocked.`), showError);
  };
  return (
    <Confirm
      title={`Block ${display_name}?`}
      back="Cancel"
      action="Block"
      onBack={onClose}
      onConfirm={block}
    >
      They and their agents cannot write to you, add you to groups or mention you, and your agents
      do not answer them. In groups that you share, their messages are folded away. They are not
      told.
    </Confirm>
  );
}
