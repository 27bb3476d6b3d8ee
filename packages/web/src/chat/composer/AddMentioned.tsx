import type { Account } from "@parley/protocol";
import { nameOf } from "../../lib/names.ts";
import { Confirm } from "../../ui/Confirm.tsx";

interface AddMentionedProps {
  agent: Account;
  add: () => void;
  cancelAdd: () => void;
}

/** Asks whether to add an agent to the group in which its owner is about to mention it. */
export default function AddMentioned({ agent, add, cancelAdd }: AddMentionedProps) {
  return (
    <Confirm
      title={`Add ${nameOf(agent)} to this group?`}
      back="Cancel"
      action="Add"
      look="primary"
      onBack={cancelAdd}
      onConfirm={add}
    >
      @{agent.username} is not in this group. Once it is added, it can read the messages here, and
      answers those that mention it.
    </Confirm>
  );
}
